#include "engine/internal/table_image.h"

#include <algorithm>

#include "base/check.h"
#include "engine/internal/core.h"

namespace geardb::engine {
namespace {

ChunkWriter MakeHead(const TableState& state, const PlanNumbers& numbers, Lsn lsn) {
  const TableLayout& layout = state.layout();
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::PriorityTableHead>> priorities;
  for (size_t i = 0; i < state.priority_table_count(); ++i) {
    priorities.push_back(ItemsImage::SaveHead(&builder, state.priority(i)));
  }
  const auto priorities_offset = builder.CreateVector(priorities);
  const auto spec = EncodeTableHistory(&builder, state.history());
  builder.Finish(fb::CreateTableHead(
      builder, layout.id(), spec, state.trajectories().reserved(), state.pages().reserved(),
      state.trajectories().count(), state.page_count(), state.steps(), numbers.next_id,
      numbers.ids_end, numbers.next_generation, numbers.generations_end, priorities_offset,
      state.removals().end()));
  ChunkWriter writer({layout.id(), ImageKind::kTable, 0}, lsn);
  writer.PutBytes(
      {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()});
  return writer;
}

}  // namespace

PlanNumbers NumbersOf(const TablePlan& plan) {
  return {.next_id = plan.next_id,
          .ids_end = std::max(plan.ids_end, plan.promised_ids_end),
          .next_generation = plan.next_generation,
          .generations_end = std::max(plan.generations_end, plan.promised_generations_end)};
}

TableImage::TableImage(TableState* state, const PlanNumbers& numbers, Lsn lsn)
    : state_(state), layout_(&state->layout()), lsn_(lsn), head_(MakeHead(*state, numbers, lsn)) {
  const TableLayout* const layout = layout_;
  const ImageShape shape(*layout);
  const uint64_t slots = state->trajectories().reserved();
  trajectories_ = std::make_unique<KeptChunks<TrajectoriesCopy>>(
      ImageShape::Chunks(slots, shape.slots_per_chunk), shape.slots_per_chunk, [=](uint64_t chunk) {
        return TrajectoriesCopy(*state, *layout, {chunk, slots});
      });
  const uint64_t lpns = state->pages().reserved();
  pages_ = std::make_unique<KeptChunks<PagesCopy>>(
      ImageShape::Chunks(lpns, shape.lpns_per_chunk), shape.lpns_per_chunk, [=](uint64_t chunk) {
        return PagesCopy(*state, *layout, {chunk, lpns});
      });
  chunks_ += trajectories_->chunks() + pages_->chunks();
  for (uint32_t i = 0; i < state->priority_table_count(); ++i) {
    const PriorityState* priority = &state->priority(i);
    const ItemsShape items(*priority);
    items_.push_back({.shape = items,
                      .image = ItemsImage(state->layout().id(), i),
                      .chunks = std::make_unique<KeptChunks<ItemsCopy>>(
                          items.chunks(), items.leaves_per_chunk,
                          [priority, items](uint64_t chunk) {
                            return ItemsImage::Copy(*priority, items, chunk);
                          }),
                      .next_sequence = ItemsImage::NextSequence(*priority)});
    chunks_ += items.chunks();
  }
  state->WatchChanges(trajectories_.get(), pages_.get());
  for (uint32_t i = 0; i < items_.size(); ++i) {
    PriorityState& priority = state->priority(i);
    priority.Watch(items_[i].chunks.get());
    if (priority.groups() == nullptr) continue;
    const DrawGroups* const groups = priority.groups();
    const GroupsShape of(*groups, slots);
    groups_.push_back({.image = GroupsImage(state->layout().id(), i),
                       .chunks = std::make_unique<KeptChunks<GroupsCopy>>(
                           of.chunks(), of.groups_per_chunk, [groups, of](uint64_t chunk) {
                             return GroupsImage::Copy(*groups, of, chunk);
                           })});
    priority.groups()->Watch(groups_.back().chunks.get());
    chunks_ += of.chunks();
  }
}

TableImage::~TableImage() {
  MutexLock lock(&state_->mutex);
  state_->WatchChanges(nullptr, nullptr);
  for (size_t i = 0; i < items_.size(); ++i) {
    state_->priority(i).Watch(nullptr);
    if (DrawGroups* const groups = state_->priority(i).groups()) groups->Watch(nullptr);
  }
}

uint64_t TableImage::kept() const {
  uint64_t kept = trajectories_->kept() + pages_->kept();
  for (const Items& items : items_) kept += items.chunks->kept();
  for (const Groups& groups : groups_) kept += groups.chunks->kept();
  return kept;
}

Status TableImage::GiveNext(const ImageSink& sink) {
  GEARDB_CHECK(!done());
  uint64_t number = next_++;
  if (number == 0) return head_.GiveTo(sink);
  --number;
  if (number < trajectories_->chunks()) {
    TrajectoriesCopy copy;
    {
      MutexLock lock(&state_->mutex);
      copy = trajectories_->Take(number);
    }
    return copy.Give(*layout_, lsn_, sink);
  }
  number -= trajectories_->chunks();
  if (number < pages_->chunks()) {
    PagesCopy copy;
    {
      MutexLock lock(&state_->mutex);
      copy = pages_->Take(number);
    }
    return copy.Give(*layout_, lsn_, sink);
  }
  return GiveItems(number - pages_->chunks(), sink);
}

Status TableImage::GiveGroups(uint64_t number, const ImageSink& sink) {
  size_t i = 0;
  while (number >= groups_[i].chunks->chunks()) number -= groups_[i++].chunks->chunks();
  GroupsCopy copy;
  {
    MutexLock lock(&state_->mutex);
    copy = groups_[i].chunks->Take(number);
  }
  return groups_[i].image.Give(copy, lsn_, sink);
}

Status TableImage::GiveItems(uint64_t number, const ImageSink& sink) {
  uint32_t i = 0;
  while (i < items_.size() && number >= items_[i].chunks->chunks()) {
    number -= items_[i++].chunks->chunks();
  }
  if (i == items_.size()) return GiveGroups(number, sink);
  Items& items = items_[i];
  ItemsCopy copy;
  {
    MutexLock lock(&state_->mutex);
    const PriorityState& priority = state_->priority(i);
    if (ItemsImage::NextSequence(priority) < items.next_sequence) {
      return Status::ResourceExhausted("table '", state_->layout().spec().name,
                                       "': the items of priority table '", priority.spec().name,
                                       "' were numbered anew while an image was taken");
    }
    copy = items.chunks->Take(number);
  }
  return items.image.Give(items.shape, copy, lsn_, sink);
}

Status SaveTable(TableState* state, const PlanNumbers& numbers, Lsn lsn, const ImageSink& sink) {
  std::unique_ptr<TableImage> image;
  {
    MutexLock lock(&state->mutex);
    image = std::make_unique<TableImage>(state, numbers, lsn);
  }
  while (!image->done()) GEARDB_RETURN_IF_ERROR(image->GiveNext(sink));
  return Status::Ok();
}

}  // namespace geardb::engine
