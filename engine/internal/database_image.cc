#include "engine/internal/database_image.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/image_generated.h"
#include "engine/internal/table_image.h"
#include "engine/internal/table_image_load.h"

namespace geardb::engine {
namespace {

constexpr ImageChunk kHead{0, ImageKind::kDatabase, 0};
/// More than any directory holds: chunks are asked for one by one, so this bounds nothing but sums.
constexpr uint64_t kTagBytesMax = uint64_t{1} << 48;

/// All tags one behind the other, in the order of the log.
void PutTag(const Tag& tag, ChunkWriter* writer) {
  writer->Put(static_cast<uint32_t>(tag.name.size()));
  writer->PutBytes(std::as_bytes(std::span(tag.name)));
  writer->Put(tag.lsn);
  writer->Put(tag.created_us);
  writer->Put(static_cast<uint8_t>(tag.damaged ? 1 : 0));
  writer->Put(uint64_t{tag.blob.size()});
  writer->PutBytes(tag.blob);
}

/// Cuts what is written to it into chunks.
class TagChunks {
 public:
  explicit TagChunks(Lsn lsn) : lsn_(lsn) {}

  void Add(const Tag& tag) {
    ChunkWriter writer({}, lsn_);
    const size_t header = writer.bytes().size();
    PutTag(tag, &writer);
    const auto bytes = writer.bytes().subspan(header);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  uint64_t bytes() const { return bytes_.size(); }
  Status GiveTo(const ImageSink& sink) const {
    for (uint64_t begin = 0; begin < bytes(); begin += kImageChunkBytes) {
      ChunkWriter writer({0, ImageKind::kTags, begin / kImageChunkBytes}, lsn_);
      writer.PutBytes(
          std::span(bytes_).subspan(begin, std::min(kImageChunkBytes, bytes() - begin)));
      GEARDB_RETURN_IF_ERROR(writer.GiveTo(sink));
    }
    return Status::Ok();
  }

 private:
  const Lsn lsn_;
  std::vector<std::byte> bytes_;
};

/// Reads tags out of the bytes of all their chunks.
class TagReader {
 public:
  explicit TagReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  /// False where the bytes end too early.
  bool Read(Tag* tag) {
    uint32_t name_bytes = 0;
    uint8_t damaged = 0;
    uint64_t blob_bytes = 0;
    if (!Get(&name_bytes) || name_bytes > bytes_.size()) return false;
    const auto* name = reinterpret_cast<const char*>(bytes_.data());
    tag->name.assign(name, name_bytes);
    bytes_ = bytes_.subspan(name_bytes);
    if (!Get(&tag->lsn) || !Get(&tag->created_us) || !Get(&damaged) || !Get(&blob_bytes) ||
        damaged > 1 || blob_bytes > bytes_.size()) {
      return false;
    }
    tag->damaged = damaged != 0;
    tag->blob.assign(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(blob_bytes));
    bytes_ = bytes_.subspan(blob_bytes);
    return true;
  }

 private:
  template <typename T>
  bool Get(T* value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return true;
  }
  std::span<const std::byte> bytes_;
};

/// How the tags lie in the chunks.
struct TagBytes {
  uint64_t total = 0;
  uint64_t chunk = 0;
};
Status LoadTags(DatabaseCore* core, Lsn lsn, const TagBytes& tag_bytes, const ImageSource& source) {
  const uint64_t total = tag_bytes.total;
  std::vector<std::byte> bytes;
  if (total > kTagBytesMax) return BadChunk(kHead, "tags of ", total, " bytes");
  while (bytes.size() < total) {
    const ImageChunk name{0, ImageKind::kTags, bytes.size() / tag_bytes.chunk};
    GEARDB_ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::Open(source, name, lsn));
    const auto part = reader.Rest();
    if (part.size() != std::min(tag_bytes.chunk, total - bytes.size())) {
      return BadChunk(name, "it has ", part.size(), " bytes of tags");
    }
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  TagReader tags(bytes);
  Lsn last = 0;
  std::vector<std::string> names;
  while (!tags.at_end()) {
    Tag tag;
    const bool read = tags.Read(&tag);
    const bool fits = read && !tag.name.empty() && tag.name.size() <= kTagNameBytesMax &&
                      tag.lsn > last && tag.lsn < lsn && (!tag.damaged || tag.blob.empty());
    if (!fits) {
      return BadChunk({0, ImageKind::kTags, 0}, "it, or one behind it, has no tag behind that at ",
                      last);
    }
    last = tag.lsn;
    names.push_back(tag.name);
    core->AddTag(std::move(tag));
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return Status::Ok();
  return BadChunk({0, ImageKind::kTags, 0}, "it, or one behind it, has the tag '", *twice,
                  "' twice");
}

/// A table of an image.
struct TableOfImage {
  TableId id = 0;
  Lsn lsn = 0;
  const ImageSource* source = nullptr;
  const ImageSource* items = nullptr;  ///< As of LoadTable.
  const TableSpec* spec = nullptr;     ///< Of a companion, else null.
  const TableCore* owner = nullptr;    ///< Likewise.
};
Result<std::shared_ptr<TableCore>> LoadOne(DatabaseCore* core, const TableOfImage& of) {
  const TableState::Memory memory = core->MemoryOfTables(
      Kept::kTaken, of.owner != nullptr ? of.owner->state->shared_mutex : nullptr);
  GEARDB_ASSIGN_OR_RETURN(LoadedTable loaded,
                          LoadTable(memory, of.id, of.lsn, *of.source, of.spec, of.items));
  std::shared_ptr<TableCore> table(new TableCore, DeleteUnlessForked<TableCore>());
  table->state = std::move(loaded.state);
  table->plan = std::move(loaded.plan);
  return table;
}

/// Each trajectory of a companion has one of the owner in its slot.
Status CheckOwned(const TableCore& owner, const TableCore& companion) {
  MutexLock lock(&owner.state->mutex);
  const index::TrajectoryIndex& owned = owner.state->trajectories();
  Status status;
  companion.state->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    const bool there =
        slot < owned.reserved() && owned.record(slot).state != index::TrajectoryState::kFree;
    if (there || !status.ok()) return;
    status = BadChunk({companion.layout().id(), ImageKind::kTrajectories, 0}, "trajectory ",
                      record.id, " in slot ", slot, " is nobody's");
  });
  return status;
}

/// A table whose companions are behind it, not all of them loaded yet.
struct OwnerOfImage {
  std::shared_ptr<TableCore> table;
  std::vector<std::shared_ptr<TableCore>> companions;
};

/// Which companion of which owner an id is.
struct OwnedPlace {
  size_t owner = 0;
  size_t companion = 0;
};

/// The tables named `ids`, which ascend; `of` but for the id.
Status LoadTables(DatabaseCore* core, const TableOfImage& of, std::span<const TableId> ids) {
  std::vector<OwnerOfImage> owners;
  std::map<TableId, OwnedPlace> owned;  // Those to come.
  std::set<std::string> names;
  for (const TableId id : ids) {
    TableOfImage next = of;
    next.id = id;
    if (const auto found = owned.find(id); found != owned.end()) {
      const auto [owner, number] = found->second;
      const TableCore& table = *owners[owner].table;
      next.spec = &table.layout().companions()[number].spec;
      next.owner = &table;
      GEARDB_ASSIGN_OR_RETURN(const auto companion, LoadOne(core, next));
      GEARDB_RETURN_IF_ERROR(CheckOwned(table, *companion));
      owners[owner].companions[number] = companion;
      owned.erase(found);
      continue;
    }
    GEARDB_ASSIGN_OR_RETURN(const auto table, LoadOne(core, next));
    const std::string& name = table->layout().spec().name;
    if (!names.insert(name).second) {
      return BadChunk({id, ImageKind::kTable, 0}, "there is a table '", name, "' already");
    }
    const auto companions = table->layout().companions();
    for (size_t k = 0; k < companions.size(); ++k) {
      if (companions[k].dropped) continue;
      const bool fresh = owned.try_emplace(companions[k].id, OwnedPlace{owners.size(), k}).second;
      if (fresh && companions[k].id > id) continue;
      return BadChunk({id, ImageKind::kTable, 0}, "column '", companions[k].name,
                      "' has its values in table ", companions[k].id);
    }
    owners.push_back({table, std::vector<std::shared_ptr<TableCore>>(companions.size())});
  }
  if (!owned.empty()) {
    const auto& [id, place] = *owned.begin();
    const TableLayout& layout = owners[place.owner].table->layout();
    return BadChunk(kHead, "table ", layout.id(), " lacks what it has of column '",
                    layout.companions()[place.companion].name, "', table ", id);
  }
  for (OwnerOfImage& owner : owners) {
    DatabaseCore::UseCompanions(owner.table, std::move(owner.companions));
    core->AddTable(std::move(owner.table));
  }
  return Status::Ok();
}

}  // namespace

DatabaseImage::DatabaseImage(DatabaseCore* core, Lsn lsn)
    : lsn_(lsn), next_table_id_(core->NextTableId()), tags_(core->Tags()) {
  for (auto& table : core->AllTables()) {
    TableState* state = table->state.get();
    MutexLock lock(&state->mutex);
    auto image = std::make_unique<TableImage>(state, NumbersOf(*table->plan), lsn);
    tables_.push_back({.table = std::move(table), .image = std::move(image)});
  }
}

Status DatabaseImage::GiveNext(const ImageSink& sink) {
  if (next_ > 0) {
    OneTable& table = tables_[next_ - 1];
    const Status status = table.image->GiveNext(sink);
    if (!table.image->done()) return status;
    table.image.reset();
    ++next_;
    return status;
  }
  ++next_;
  TagChunks tags(lsn_);
  for (const Tag& tag : tags_) tags.Add(tag);
  std::vector<uint32_t> ids;
  for (const OneTable& table : tables_) ids.push_back(table.table->layout().id());
  flatbuffers::FlatBufferBuilder builder;
  const auto ids_offset = builder.CreateVector(ids);
  builder.Finish(fb::CreateDatabaseHead(builder, next_table_id_, ids_offset, tags.bytes()));
  ChunkWriter head(kHead, lsn_);
  head.PutBytes(
      {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()});
  GEARDB_RETURN_IF_ERROR(head.GiveTo(sink));
  return tags.GiveTo(sink);
}

Status SaveDatabase(DatabaseCore* core, Lsn lsn, const ImageSink& sink) {
  DatabaseImage image(core, lsn);
  while (!image.done()) GEARDB_RETURN_IF_ERROR(image.GiveNext(sink));
  return Status::Ok();
}

Status LoadDatabase(DatabaseCore* core, Lsn lsn, const ImageSource& source,
                    const ImageSource* items) {
  GEARDB_ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::Open(source, kHead, lsn));
  std::vector<uint64_t> words;
  GEARDB_ASSIGN_OR_RETURN(const fb::DatabaseHead* const head,
                          reader.FlatBuffer<fb::DatabaseHead>(&words));
  GEARDB_RETURN_IF_ERROR(LoadTags(core, lsn, {head->tag_bytes(), reader.chunk_bytes()}, source));
  std::vector<TableId> ids;
  for (uint32_t i = 0; head->tables() != nullptr && i < head->tables()->size(); ++i) {
    const TableId id = head->tables()->Get(i);
    const TableId last = ids.empty() ? 0 : ids.back();
    if (id <= last || id >= head->next_table_id()) {
      return BadChunk(kHead, "table ", id, " behind table ", last, "; the next is ",
                      head->next_table_id());
    }
    ids.push_back(id);
  }
  GEARDB_RETURN_IF_ERROR(LoadTables(core, {.lsn = lsn, .source = &source, .items = items}, ids));
  if (head->next_table_id() == 0) return BadChunk(kHead, "the next table is 0");
  core->SkipTableIds(head->next_table_id());
  return Status::Ok();
}

}  // namespace geardb::engine
