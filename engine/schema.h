// What a table is: its columns, how long its trajectories are, how much it holds, and the priority
// tables over it. Stored in the log; checked at every open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "base/window.h"
#include "engine/rate_limit.h"
#include "engine/tensor.h"

namespace geardb {

// Limits of a schema. CreateTable and CreatePriorityTable refuse what is beyond, by name.
/// Characters of the name of a table, priority table or column. (Tags: kTagNameBytesMax.)
inline constexpr size_t kNameLengthMax = 64;
inline constexpr size_t kColumnsMax = 256;      ///< Per-step and per-trajectory ones together.
inline constexpr size_t kColumnGroupsMax = 32;  ///< The first, unnamed one included.
/// Columns, and groups, that a table ever has: dropped ones keep their numbers.
inline constexpr size_t kColumnNumbersMax = 1024;
inline constexpr size_t kColumnGroupNumbersMax = 256;
/// Dimensions of a column: a batch shows it as [batch, rows, stack, ...], and a Shape has 8.
inline constexpr int kColumnRankMax = Shape::kRankMax - 3;
inline constexpr uint64_t kColumnRowBytesMax = uint64_t{64} << 20;  ///< Of one row of one column.
/// Of a per-trajectory column in index memory, where filters see it. Wider ones are in pages.
inline constexpr uint64_t kTrajectoryColumnBytesMax = 64;
/// Ragged columns, blobs and wide per-trajectory columns of a table, together.
inline constexpr size_t kLengthColumnsMax = 32;
/// Rows of one value of a ragged column (of a step) or a blob.
inline constexpr uint64_t kValueRowsMax = uint64_t{1} << 31;
inline constexpr size_t kPriorityTablesMax = 64;  ///< Made with a table.
/// Each of before, length, after and stride of a window.
inline constexpr int64_t kExtentMax = int64_t{1} << 24;
inline constexpr uint32_t kGroupCountMax = uint32_t{1} << 16;  ///< Members of a draw group.
// Besides, a page of steps holds at most 256 rows, and with all its columns a page must fit a
// quarter of the ring (ring_bytes) and half of a segment (segment_bytes), each less 4 KiB for the
// rest of a record, and the frame budget (budgets.frames_bytes).

/// Where a column has its values. In stored schemas: frozen.
enum class ColumnKind : uint8_t {
  kPerStep = 0,  ///< One row per step.
  /// One value per trajectory. Of more than 64 bytes it is kept in pages, not in index memory:
  /// filters and initial priorities cannot look at it.
  kPerTrajectory = 1,
  /// Any number of rows per step: text, compressed images, as many agents as there are.
  kRagged = 2,
  kBlob = 3,  ///< Any number of rows per trajectory: a prompt, a level, a video.
};
inline constexpr ColumnKind kColumnKindLast = ColumnKind::kBlob;

/// One of each step, in a column group.
constexpr bool IsPerStep(ColumnKind kind) {
  return kind == ColumnKind::kPerStep || kind == ColumnKind::kRagged;
}

/// How a column is compressed in the cold store; in memory and in the log it is as it is. In stored
/// schemas: frozen. What does not get smaller is stored as it is.
enum class Compression : uint8_t {
  kLz4 = 0,
  kNone = 1,
  kZstd = 2,  ///< Smaller than LZ4; takes several times as long to write.
  /// Each row of a page xor the one before it, byte by byte, then LZ4: for frames of which little
  /// changes from one to the next. Of any dtype.
  kXorDelta = 3,
};
inline constexpr Compression kCompressionLast = Compression::kXorDelta;

/// "lz4", "none", "zstd", "xor_delta".
constexpr const char* CompressionName(Compression compression) {
  constexpr const char* kNames[] = {"lz4", "none", "zstd", "xor_delta"};
  return kNames[static_cast<uint8_t>(compression)];
}

/// A named tensor of fixed dtype and shape. Every column of a row that nobody wrote (a final row's
/// others, a late group before it is filled, rows from before the column was added) reads as
/// `default_value` in each element.
struct Column {
  std::string name = {};  ///< 1…64 characters of [A-Za-z0-9_./-], not starting with "geardb.".
  DType dtype = DType::kF32;
  /// Of one row (of a ragged column or a blob, too: a value has shape [rows, ...]); at most
  /// kColumnRankMax dimensions, none of them 0. Default: a scalar.
  Shape shape = {};
  ColumnKind kind = ColumnKind::kPerStep;
  /// Given with terminated or truncated when the table has `final_row` (an observation); the
  /// final row's other columns hold their defaults.
  bool in_final_row = false;
  /// Per step: the column group that it is stored with, by name; empty: the first.
  std::string group = {};
  /// Must be a value of `dtype`; NaN and infinities are values of floating-point types.
  double default_value = 0;
  /// Of per-step columns, but those of volatile groups, which are in memory alone.
  Compression compression = Compression::kLz4;
  /// Of kRagged and kBlob: rows that one value has, about; pages are as large as a quarter of what
  /// a trajectory has then, at most 64 KiB. 0: unknown.
  uint64_t expected_rows = 0;

  /// Defaults are compared as bits: NaN equals itself.
  friend bool operator==(const Column& a, const Column& b);
};

/// Per-step columns that are stored together, in pages of their own: a batch reads the pages of
/// those groups alone whose columns it names. The first group of a table has no name and is not
/// listed; it holds the columns that name no group, at least one.
struct ColumnGroup {
  std::string name = {};
  /// Filled later, by Table::Patch, each trajectory from its first row on: log-probabilities,
  /// advantages, targets. Writers do not give its columns.
  bool late = false;
  /// Not in the log: after a reopen its columns hold their defaults, and of a late one nothing is
  /// filled. For what can be computed again.
  bool is_volatile = false;

  friend bool operator==(const ColumnGroup&, const ColumnGroup&) = default;
};

/// Whether a priority table may require the group.
inline bool IsRequirable(const ColumnGroup& group) { return group.late && !group.is_volatile; }

/// What leaves a table that is full. In stored schemas: frozen.
enum class Remover : uint8_t {
  kNone = 0,  ///< Nothing: an append waits until its deadline, then ResourceExhausted.
  /// The oldest: trajectories that no writer has (closed, orphaned) whole, open ones page by page
  /// from the head.
  kFifo = 1,
  // The others choose among the trajectories that no writer has, which leave whole. Where there is
  // none, and rows or bytes are what is too much, open ones are trimmed as by kFifo.
  kLifo = 2,     ///< The newest: the last that its writer closed or left.
  kUniform = 3,  ///< Any, by `remover_seed`: all alike.
  /// By priority in `remover_priority_table`: the smallest first, among equals the oldest. That of
  /// a trajectory is the largest raw priority of its items, 0 without items.
  kMinHeap = 4,
  kMaxHeap = 5,  ///< Likewise, the largest first.
};
inline constexpr Remover kRemoverLast = Remover::kMaxHeap;

/// Looks at priorities.
constexpr bool RemovesByPriority(Remover remover) {
  return remover == Remover::kMinHeap || remover == Remover::kMaxHeap;
}

/// What a priority table draws. In stored schemas: frozen.
enum class ItemKind : uint8_t { kWindow = 0, kTrajectory = 1, kGroup = 2 };
inline constexpr ItemKind kItemKindLast = ItemKind::kGroup;

/// "window", "trajectory", "group".
constexpr const char* ItemKindName(ItemKind item) {
  constexpr const char* kNames[] = {"window", "trajectory", "group"};
  return kNames[static_cast<uint8_t>(item)];
}

/// Draw groups: trajectories that share a key (completions of one prompt, episodes of one level)
/// and are drawn together. A member is a closed trajectory with steps that has what `required` asks
/// for; it joins the group of its key then, and begins one where none takes members. It leaves with
/// its trajectory, or with the last of its steps (a closed stream that is cut to where only final
/// rows are left). A group is an item from when it is *ready* until its last member has left. It
/// takes no more members once it is complete or sealed, or can be drawn no more (exhausted,
/// deleted): the next trajectory of the key begins the next group. A ready group that loses members
/// goes on without them. Who was shown by no batch when a group can be drawn no more (exhausted by
/// a hand-over or Configure) joins the next group of its key; in the cut of an epoch nobody joins.
struct GroupSpec {
  /// A per-trajectory scalar of integers (not bool). It counts as it is when the trajectory joins;
  /// where nobody set it, its default is the key, unless `required` has it. u64: as the i64 of the
  /// same bits.
  std::string key = {};
  uint32_t count = 0;  ///< n, 1…kGroupCountMax: a group of so many members is complete, and ready.
  /// k, 1…n, where fewer than n do; 0: n. Without a deadline a group is ready from its k-th member
  /// on, and still takes others until it is complete: the item stays the same.
  uint32_t at_least = 0;
  /// Not 0: a group with at least k members (k < n) is sealed, and so ready, when its first came
  /// longer ago than this; after a reopen, longer ago than the open. Seen to in the background
  /// (DatabaseOptions::background), soon after; or by PriorityTable::SealOverdueGroups.
  int64_t deadline_ms = 0;

  friend bool operator==(const GroupSpec&, const GroupSpec&) = default;
};

/// How a priority table draws. In stored schemas: frozen. From kFifo on the items of one batch are
/// distinct. Fifo, lifo and the heaps take no random numbers: a batch shows the first `batch` items
/// of an order, in that order, and again the same ones until they have left or priorities change.
/// The order of items is that in which they became drawable: that of the log, within one record
/// that of its lanes and of their rows, and for what is there when the priority table is created
/// that of slots and rows. Fifo, lifo, uniform and epoch have no priorities: those given are
/// counted, and ignored.
enum class SelectorKind : uint8_t {
  kUniform = 0,             ///< All items alike, with replacement.
  kPrioritized = 1,         ///< By w = p^α, with replacement.
  kFifo = 2,                ///< The oldest first.
  kLifo = 3,                ///< The newest first.
  kMinHeap = 4,             ///< The smallest raw priority first, among equals the oldest; also 0.
  kMaxHeap = 5,             ///< The largest raw priority first, likewise: the top k.
  kWithoutReplacement = 6,  ///< By w = p^α among what the rows before have left.
  /// Each item once, in random order, for each pass over a cut of the table:
  /// PriorityTable::BeginEpoch. Takes no maximum of times, and no queue.
  kEpoch = 7,
};
inline constexpr SelectorKind kSelectorKindLast = SelectorKind::kEpoch;

/// Items have raw priorities, which the selector looks at.
constexpr bool HasPriorities(SelectorKind kind) {
  return kind != SelectorKind::kUniform && kind != SelectorKind::kFifo &&
         kind != SelectorKind::kLifo && kind != SelectorKind::kEpoch;
}
/// Raw priorities become weights p^α.
constexpr bool HasWeights(SelectorKind kind) {
  return kind == SelectorKind::kPrioritized || kind == SelectorKind::kWithoutReplacement;
}

/// The raw priority of an item whose append carries none. In stored schemas: frozen.
enum class InitialPriority : uint8_t {
  kMax = 0,       ///< The largest raw priority ever applied to this priority table, from 1.
  kConstant = 1,  ///< `initial_priority_value`.
  /// A per-trajectory f32 scalar, as it is when the item becomes drawable; of a group that of the
  /// member that made it ready, where it was sealed of its last.
  kColumn = 2,
};

/// How often an epoch shows its items, and what becomes of them. SelectorKind::kEpoch only.
struct EpochSpec {
  uint32_t passes = 1;  ///< Times that each item is shown; at least 1.
  /// A closed trajectory all of whose items here have been covered in the last pass is removed
  /// behind the hand-over that covered the last one, or behind its end where that comes later,
  /// whatever else could draw it.
  bool remove_covered = false;

  friend bool operator==(const EpochSpec&, const EpochSpec&) = default;
};

/// What a standing filter does with a trajectory that fails it. In stored schemas: frozen.
enum class FilterAction : uint8_t {
  /// Its items stay, with their priorities and their places in a queue or an order, and are not
  /// drawn while it fails.
  kHide = 0,
  /// The same; and once it is closed it is removed from the table, whatever else could draw it:
  /// Table::ReadRemovals tells producers. Behind an append at Ack::kMemory it is removed in the
  /// background (DatabaseOptions::background), soon after; or by the next change of the table.
  kExpire = 1,
};
inline constexpr FilterAction kFilterActionLast = FilterAction::kExpire;

/// A priority table: items over the trajectories of a table, with a weight each.
struct PriorityTableSpec {
  std::string name = {};
  ItemKind item = ItemKind::kWindow;
  /// Windows only: the rows {before, length, after} that every item promises, where anchors lie,
  /// and what happens at the edges (base/window.h).
  WindowRule window = {};
  GroupSpec group = {};  ///< Groups only.
  SelectorKind selector = SelectorKind::kPrioritized;
  /// Exponent α of w = p^α, where there are weights; 0…4. Schaul et al., "Prioritized Experience
  /// Replay".
  double alpha = 0.6;
  InitialPriority initial = InitialPriority::kMax;
  float initial_priority_value = 1.0f;
  std::string initial_priority_column = {};
  /// What an item waits for, by name: late column groups (filled up to the last step that the item
  /// shows or promises, see README, "Windows"; for a trajectory up to its last step) and
  /// per-trajectory columns (set at all). Until then it is no item. Volatile groups cannot be
  /// required: the same items are there after a reopen.
  std::vector<std::string> required = {};
  /// Key of every draw; with the draw number it decides which items come.
  uint64_t seed = 0;
  /// When items may come and be drawn: an append waits (WriterOptions::admission_timeout_ms) until
  /// the limiters of all priority tables admit the items that it makes drawable, a Next until this
  /// one admits the rows of its batch. Items that come by Patch, SetColumns, Cut,
  /// SealGroup, a deadline or CreatePriorityTable count as inserts, and wait for nothing.
  RateLimit limiter = {};
  /// An item that was in so many rows of batches handed over is exhausted: it stays an item, and is
  /// never drawn again. 0: any number, at most kMaxTimesSampledMax; 1 for a queue or stack. With a
  /// maximum a batch waits until as many items can be drawn as it has rows.
  uint32_t max_times_sampled = 0;
  /// A closed trajectory of which an item here is exhausted or deleted (PriorityTable::Delete), and
  /// all of its items in all priority tables are, is removed behind the change that left nothing to
  /// draw: the hand-over or Delete that took the last item, or, where that was before, the end of
  /// the trajectory, a Truncate, or other limits; behind an append at Ack::kMemory as of
  /// FilterAction::kExpire. Not set: for queues and stacks.
  std::optional<bool> remove_when_exhausted = {};
  EpochSpec epoch = {};
  /// A standing filter: the text of a Filter (engine/filter.h) of at most 4,096 characters, which
  /// may name anything but times_sampled; none where it is empty. What each trajectory comes to is
  /// kept up to date with every change of it, so draws cost nothing more, and probabilities are
  /// those among what passes. PriorityTable::SetFilter moves its bounds. Not for epochs.
  std::string filter = {};
  FilterAction filter_action = FilterAction::kHide;

  friend bool operator==(const PriorityTableSpec&, const PriorityTableSpec&) = default;
};

/// Trajectories of one schema.
struct TableSpec {
  std::string name = {};
  std::vector<Column> columns = {};
  /// Column groups besides the first, which has no name.
  std::vector<ColumnGroup> groups = {};
  /// A closed trajectory of length T stores T + 1 rows: row T holds the columns with
  /// `in_final_row`, so that the next observation of the last step exists without being stored
  /// twice. It is never an anchor. A cut makes the last row the final row.
  bool final_row = false;
  /// Trajectories go on after an end: the whole life of an environment.
  bool stream = false;
  /// Rows of a page, of all groups; 0 chooses a power of two so that a page of the widest group is
  /// about 64 KiB, at most 256 and at most bit_ceil(expected_steps / 4), and fits a record of the
  /// log; with `bytes_max` also so that a page and its values of any length (`expected_rows`),
  /// which leave together, are about a 64th of that at most.
  uint32_t steps_per_page = 0;
  /// Typical length of a trajectory; a hint for page size only. 1 for single transitions: with the
  /// default each would take a page of 256 steps.
  uint64_t expected_steps = 1024;

  /// Capacity; 0 is no bound. `bytes_max` counts frame bytes, where a page takes its frames in all
  /// groups from its first row on, late ones too. CreateTable refuses a bound in bytes
  /// or steps that with those of other tables (each in slabs of 2 MiB) leaves less than a sixteenth
  /// of the frames to the calls under way: writers whose calls take more need a smaller one. What
  /// it accepts is kept for the table, once others have given back what they took before it came:
  /// they take what is left; of a bound in bytes nothing is, where there are values of any length,
  /// which count, too. Unfilled parts are no steps. Columns and values that come later
  /// (AddColumns, SetColumns, Patch) count, too, and are not refused for it: what has to leave for
  /// them leaves with the next append that takes a page.
  uint64_t trajectories_max = 0;
  /// Stored rows, final rows included. At least two for each lane that appends (three with
  /// `final_row`): of an open trajectory one row always stays.
  uint64_t steps_max = 0;
  uint64_t bytes_max = 0;
  Remover remover = Remover::kFifo;
  std::string remover_priority_table = {};  ///< Of heaps: one of `priority_tables`.
  uint64_t remover_seed = 0;                ///< Of kUniform: its key.

  // Time, in ms; 0 is never. Seen to in the background (DatabaseOptions::background), soon after;
  // or by Table::RemoveExpired and Table::CloseOrphans.
  /// Closed trajectories that were created longer ago than this are removed.
  int64_t ttl_ms = 0;
  /// Orphans that nobody has resumed for so long, since their writer left them or the database was
  /// opened, are closed as cut.
  int64_t orphan_timeout_ms = 0;

  std::vector<PriorityTableSpec> priority_tables = {};

  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

/// InvalidArgument naming the column or option that is wrong, and why.
Status ValidateTableSpec(const TableSpec& spec);
Status ValidatePriorityTableSpec(const TableSpec& table, const PriorityTableSpec& spec);

/// OK when a table created as `stored` may be opened as `wanted`: FailedPrecondition naming the
/// first difference otherwise.
Status CheckSameSpec(const TableSpec& stored, const TableSpec& wanted);

/// The S that a table of this spec asks for: steps_per_page, or the default described there, of
/// which CreateTable takes less where the log needs it.
uint32_t ChooseStepsPerPage(const TableSpec& spec);

}  // namespace geardb
