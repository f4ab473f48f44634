// WindowModel: what engine/README.md, "Windows", says, in the most naive way: trajectories are
// lists of rows, every rule walks over them, and nothing is remembered between two questions.
//
// It shares no code with the engine nor with base/window.h (only the names of types and ends), so
// that a mistake would have to be made twice. Ids come from the store that is tested; what leaves a
// full table is for CapacityModel to say.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/dtype.h"
#include "base/types.h"

namespace geardb::conformance {

using Bytes = std::vector<std::byte>;

/// Adds `from` to the end of `bytes`.
inline void Add(const Bytes& from, Bytes* bytes) {
  bytes->insert(bytes->end(), from.begin(), from.end());
}

struct ModelColumn {
  DType dtype = DType::kF32;
  size_t elements = 1;  ///< Of one row.
  bool in_final_row = false;
  bool late = false;         ///< Not appended: Patch fills it.
  bool is_volatile = false;  ///< A reopen makes it the default again.
  Bytes unwritten = {};      ///< One row of defaults.

  size_t row_bytes() const { return elements * DTypeBytes(dtype); }
};

/// The per-step columns of a table, and how its trajectories end.
struct ModelTable {
  std::vector<ModelColumn> columns;
  bool final_row = false;
  bool stream = false;
};

enum class Side { kRequire, kClip, kPad, kRepeat, kShift };

/// What a priority table draws.
struct ModelRule {
  int64_t before = 0;
  int64_t length = 1;
  int64_t after = 0;
  int64_t stride = 1;
  bool stride_from_end = false;
  Side left = Side::kRepeat;
  Side right = Side::kClip;
  bool cross_ends = false;
  bool trajectories = false;  ///< Items are trajectories; all of the above is ignored.
  bool needs_filled = false;  ///< An item waits until its steps are filled…
  bool needs_mark = false;    ///< …and its trajectory is marked.
};

/// One row of a trajectory, as a window sees it.
struct ModelRow {
  int64_t number = 0;
  std::vector<Bytes> columns;
  End end = End::kGo;
  bool final = false;  ///< A final row: no step.
  bool first = false;  ///< The first of its episode.
};

enum class ModelState { kOpen, kClosed, kOrphaned };

struct ModelTrajectory {
  std::vector<ModelRow> rows;  ///< All that is there, oldest first.
  ModelState state = ModelState::kOpen;
  End end = End::kGo;  ///< Of a closed one.

  int64_t first_row() const { return rows.front().number; }
  int64_t rows_end() const { return rows.back().number + 1; }
  /// One past the last step.
  int64_t steps_end() const { return rows_end() - (rows.back().final ? 1 : 0); }
  /// Rows that are steps.
  int64_t StepCount() const;
};

/// One output.
struct ModelView {
  size_t column = 0;
  /// Relative rows; with `item_length` instead those at begin + i * stride for each step of the
  /// item's length part, and `plus` more.
  std::vector<int64_t> rows = {};
  bool item_length = false;
  int64_t begin = 0;
  int64_t stride = 1;
  int64_t plus = 0;
  /// The n-step bootstrap row; for every row with ModelNStep::every_row.
  bool bootstrap = false;
  int64_t stack = 1;
  Bytes pad = {};  ///< One element, as delivered.
  bool to_f32 = false;
};

struct ModelNStep {
  size_t reward = 0;
  int64_t n = 1;
  float gamma = 1;
  std::optional<size_t> discount = {};
  std::optional<size_t> life_loss = {};
  bool every_row = false;
};

/// What a view shows of an item: entry after entry, absent ones left out.
struct ShownView {
  int64_t entries = 0;
  Bytes bytes;
  std::vector<uint8_t> valid;
  std::vector<uint8_t> learn;
  std::vector<uint8_t> is_first;
  std::vector<uint8_t> end;
};

/// n-step outputs of an item, one element or one for every step of its length part.
struct ShownNStep {
  std::vector<float> returns;
  std::vector<float> discounts;
  std::vector<float> masks;
  std::vector<int64_t> bootstrap_rows;
};

struct ModelItem {
  TrajectoryId id = 0;
  int64_t row = 0;

  friend auto operator<=>(const ModelItem&, const ModelItem&) = default;
};

class WindowModel {
 public:
  explicit WindowModel(ModelTable table) : table_(std::move(table)) {}

  // Changes.

  /// Appends rows, each a list of the columns' bytes; `end` belongs to the last of them.
  /// `final_row` holds the columns' bytes of the final row where one comes (others are ignored).
  void Append(TrajectoryId id, const std::vector<std::vector<Bytes>>& rows, End end,
              const std::vector<Bytes>& final_row);
  /// Ends an open trajectory as cut, and closes it. False: its one row was made a final row, it is
  /// gone.
  bool Cut(TrajectoryId id);
  void Remove(TrajectoryId id) { trajectories_.erase(id); }
  /// Rows before `first` are gone.
  void Trim(TrajectoryId id, int64_t first);
  void SetState(TrajectoryId id, ModelState state) { trajectories_.at(id).state = state; }
  /// Rows below `end` are filled.
  void Fill(TrajectoryId id, int64_t end) { filled_[id] = std::max(filled_[id], end); }
  void Mark(TrajectoryId id) { marked_.insert(id); }
  /// What is volatile is gone.
  void ForgetVolatile();
  /// A stored row's column has another value.
  void SetRow(TrajectoryId id, int64_t row, size_t column, const Bytes& value);

  // Questions.

  const ModelTable& table() const { return table_; }
  const std::map<TrajectoryId, ModelTrajectory>& trajectories() const { return trajectories_; }
  /// All items of a priority table, by id and row.
  std::vector<ModelItem> Items(const ModelRule& rule) const;
  /// Where an item is found: what its episode is like, and whether its window stands elsewhere.
  struct Situation {
    bool open = false;
    bool head_missing = false;
    bool moved = false;
  };
  Situation SituationOf(const ModelRule& rule, const ModelItem& item) const;
  /// Steps of the item's length part that exist.
  int64_t Length(const ModelRule& rule, const ModelItem& item) const;
  ShownView Show(const ModelRule& rule, const ModelItem& item, const ModelView& view,
                 const ModelNStep* n_step) const;
  ShownNStep ShowNStep(const ModelRule& rule, const ModelItem& item,
                       const ModelNStep& n_step) const;
  /// What a row draw of an item may take: the rows of the episode around where its window stands.
  struct RowsAround {
    std::vector<int64_t> rows;
    int64_t anchor = 0;
  };
  RowsAround DrawnFrom(const ModelRule& rule, const ModelItem& item) const;
  /// What a view shows of these rows of them.
  ShownView ShowDrawn(const ModelRule& rule, const ModelItem& item, const ModelView& view,
                      const std::vector<int64_t>& rows) const;

 private:
  /// The rows that a window may show, in order.
  struct Episode {
    std::vector<const ModelRow*> rows;
    size_t steps_end = 0;  ///< Index one past the last step in `rows`.
    bool head_missing = false;
    bool open = false;
  };
  /// A window, by indices into its episode's rows.
  struct Window {
    Episode episode;
    int64_t anchor = 0;
    int64_t steps = 0;
    int64_t length = 0;  ///< Of the extent.
  };
  struct Bootstrap {
    float value = 0;
    float discount = 0;
    float mask = 0;
    int64_t row = 0;  ///< Index into the episode's rows.
  };

  bool EndsEpisode(const ModelRow& row) const;
  bool NoStep(const ModelRule& rule, const ModelRow& row) const;
  std::vector<Episode> Episodes(const ModelRule& rule, const ModelTrajectory& trajectory) const;
  bool RequiresLeft(const ModelRule& rule, const Episode& episode) const;
  bool RequiresRight(const ModelRule& rule, const Episode& episode) const;
  bool LeftFits(const ModelRule& rule, int64_t stand) const;
  bool RightFits(const ModelRule& rule, const Episode& episode, int64_t stand) const;
  int64_t Stand(const ModelRule& rule, const Episode& episode, int64_t at) const;
  bool IsAnchor(const ModelRule& rule, const Episode& episode, int64_t at) const;
  /// What the rule waits for is there for the item.
  bool IsReady(const ModelRule& rule, const ModelItem& item) const;
  Window Place(const ModelRule& rule, const ModelItem& item) const;
  /// The episode around where an item's window stands, whatever its window may cross.
  Episode Around(const ModelRule& rule, const ModelItem& item, int64_t* anchor) const;
  Bootstrap Look(const ModelRule& rule, const Window& window, int64_t at,
                 const ModelNStep& n_step) const;
  void ShowEntry(const ModelRule& rule, const Window& window, const ModelView& view, int64_t at,
                 int64_t end, ShownView* shown) const;
  void AddRow(const ModelView& view, const ModelRow& row, Bytes* bytes) const;
  void AddPadding(const ModelView& view, Bytes* bytes) const;

  ModelTable table_;
  std::map<TrajectoryId, ModelTrajectory> trajectories_;
  std::map<TrajectoryId, int64_t> filled_;
  std::set<TrajectoryId> marked_;
};

/// One element of `dtype` as f32, as the store delivers it with `to_f32`.
float ElementAsFloat(DType dtype, const std::byte* element);

}  // namespace geardb::conformance
