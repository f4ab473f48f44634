#include "engine/internal/table_frames.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/break.h"

namespace geardb::engine {

TableFrames::TableFrames(const Memory& memory, const TableLayout* layout)
    : memory_(memory),
      layout_(layout),
      hands_(layout->group_count(), 0),
      may_be_cold_(memory.may_be_cold) {
  for (auto& frame : defaults_) frame.store(FrameRef{}.bits, std::memory_order_relaxed);
  pools_.reserve(kColumnGroupNumbersMax);
  for (size_t g = 0; g < layout->group_count(); ++g) pools_.push_back(NewPool(*layout, g));
}

TableFrames::~TableFrames() {
  for (;;) {
    std::shared_ptr<PageLoad> load;
    {
      MutexLock lock(memory_.mutex);
      if (unfinished_.empty()) break;
      load = unfinished_.begin()->second;
    }
    memory_.loader->Wait(load.get());
    Finish(load.get());
  }
  if (memory_.loader != nullptr) memory_.loader->AwaitIdle(this);
  if (pages_ != nullptr && trajectories_ != nullptr) {  // Else the table's creation failed.
    trajectories_->ForEach([this](Slot, const index::TrajectoryRecord& record) {
      for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) Retire(lpn);
    });
  }
  for (size_t g = 0; g < pools_.size(); ++g) {
    if (IsArenaFrame(default_frame(g))) memory_.arena->Retire(pools_[g], default_frame(g));
    memory_.arena->DropPool(pools_[g]);
  }
}

Status TableFrames::MakeDefaults(Kept kept) {
  for (size_t g = 0; g < pools_.size(); ++g) {
    if (layout_->group(g).dropped) {
      SetDefaults(g, MakeDroppedDefaults(g));
    } else if (layout_->group(g).may_be_unwritten()) {
      GEARDB_ASSIGN_OR_RETURN(const FrameRef frame, NewDefaults(*layout_, g, pools_[g], kept));
      SetDefaults(g, frame);
    }
  }
  return Status::Ok();
}

void TableFrames::CopyDefaults(size_t group, std::byte* into) const {
  const FrameRef defaults = default_frame(group);
  if (!defaults.valid()) return;
  std::memcpy(into, memory_.arena->Resolve(defaults), pools_[group]->frame_bytes());
}

// ---- Bringing in.

PagePlace TableFrames::PlaceOf(size_t group, Lpn lpn) const {
  const index::PageRecord& page = pages_->page(lpn);
  const index::GroupPageRecord& record = pages_->residency(group, lpn);
  const bool owned = owners_ != nullptr && page.slot < owners_->reserved();
  return {.layout = layout_,
          .group = static_cast<uint32_t>(group),
          .trajectory = trajectories_->record(page.slot).id,
          .page_number = page.page_number,
          .rows = record.rows_filled,
          .log_at = record.piece_at,
          .log_checksum = record.piece_checksum,
          .in_cold = (record.flags & kPageInCold) != 0,
          .newest_lsn = record.newest_lsn,
          .lpn = lpn,
          .generation = page.generation,
          .owner = owned ? owners_->record(page.slot).id : 0};
}

void TableFrames::GiveMemory(PageLoad* load, PageMemory memory) const {
  const uint64_t bytes = AsideBytes(load->place.group);
  const bool fits = memory != nullptr && memory.get_deleter().bytes >= bytes;
  load->memory = fits ? std::move(memory) : memory_.loader->NewMemory(bytes);
  const auto address = AlignUp(reinterpret_cast<uintptr_t>(load->memory.get()), kFrameAlignment);
  load->frame = FrameRef::Make(kProcessMemory, address);
  load->into = reinterpret_cast<std::byte*>(address);
}

std::shared_ptr<PageLoad> TableFrames::LoadAside(const PagePlace& place, PageMemory memory) const {
  auto load = std::make_shared<PageLoad>();
  load->place = place;
  GiveMemory(load.get(), std::move(memory));
  CopyDefaults(place.group, load->into);
  memory_.loader->Begin(load);
  return load;
}

std::shared_ptr<PageLoad> TableFrames::UnderWay(size_t group, Lpn lpn) const {
  const auto found = loading_.find({static_cast<uint32_t>(group), lpn});
  if (found == loading_.end()) return nullptr;
  // Whoever asked for it may have gone since, and with its guard what the page was read from.
  const PagePlace& place = found->second->place;
  const PagePlace now = PlaceOf(group, lpn);
  const bool is_there = place.log_at == now.log_at && place.in_cold == now.in_cold;
  return is_there && Holds(place) ? found->second : nullptr;
}

std::shared_ptr<PageLoad> TableFrames::Begin(const PagePlace& place,
                                             std::optional<FrameRef> frame) {
  auto load = std::make_shared<PageLoad>();
  load->place = place;
  load->owner = this;
  if (frame) {
    load->frame = *frame;
    load->into = memory_.arena->Resolve(*frame);
  } else {
    ++stats_.unplaced;
    GiveMemory(load.get(), {});
  }
  CopyDefaults(place.group, load->into);
  loading_.insert_or_assign({place.group, place.lpn}, load);
  unfinished_.emplace(load.get(), load);
  memory_.loader->Begin(load);
  // Where there are no threads it is ready, and nobody else may ever ask for it.
  if (memory_.loader->IsReady(*load)) FinishHeld(load.get());
  return load;
}

FrameRef TableFrames::BringIn(size_t group, Lpn lpn, PageWaits* waits) {
  --stats_.hits;
  ++stats_.misses;
  if (const auto aside = waits->FindAside(this, static_cast<uint32_t>(group), lpn)) return *aside;
  std::shared_ptr<PageLoad> load = UnderWay(group, lpn);
  if (load == nullptr) {
    const auto frame = memory_.arena->TryAllocate(pools_[group]);
    if (!frame) {
      ++stats_.unplaced;
      return PutAside(group, lpn, waits);
    }
    load = Begin(PlaceToShow(group, lpn, waits), frame);
  }
  waits->Add(memory_.loader, load);
  return load->frame;
}

PagePlace TableFrames::PlaceToShow(size_t group, Lpn lpn, PageWaits* waits) const {
  PagePlace place = PlaceOf(group, lpn);
  // Once a pass has moved a page, a patch does not wait for who still reads it from both the log
  // and the cold store, and the next pass may put its version over this one.
  const bool has_cold = (pages_->residency(group, lpn).flags & kPageHasCold) != 0;
  if (has_cold && !place.in_cold && place.log_at == kNoLsn) {
    place.as_of = waits->ColdNow(*memory_.loader);
  }
  return place;
}

FrameRef TableFrames::PutAside(size_t group, Lpn lpn, PageWaits* waits) const {
  PagePlace place = PlaceToShow(group, lpn, waits);
  // A patch need not wait until it is read, and the cleaner may put its version over this one.
  if (place.in_cold) place.as_of = waits->ColdNow(*memory_.loader);
  return waits->AddAside(this, place);
}

bool TableFrames::Holds(const PagePlace& place) const {
  const index::GroupPageRecord& record = pages_->residency(place.group, place.lpn);
  return pages_->IsLive(place.lpn, place.generation) && record.newest_lsn == place.newest_lsn &&
         record.rows_filled == place.rows;
}

Result<FrameRef> TableFrames::ReadNow(size_t group, Lpn lpn, bool* of_file, Kept kept) {
  for (;;) {
    const FrameRef frame = FrameOf(group, lpn);
    if (frame.valid()) return frame;
    ++stats_.misses;
    auto load = UnderWay(group, lpn);
    if (load == nullptr) {
      load = Begin(PlaceOf(group, lpn), memory_.arena->TryAllocate(pools_[group]));
    }
    memory_.loader->Wait(load.get());
    const bool of_arena = !load->memory;
    FinishHeld(load.get());
    if (of_file != nullptr) *of_file = load->of_file;
    GEARDB_RETURN_IF_ERROR(load->status);
    if (of_arena) continue;
    GEARDB_ASSIGN_OR_RETURN(const FrameRef placed,
                            memory_.arena->Allocate(pools_[group], Deadline::Now(), kept));
    std::memcpy(memory_.arena->Resolve(placed), load->into, pools_[group]->frame_bytes());
    Give(group, lpn, placed);
  }
}

void TableFrames::Finish(PageLoad* load) {
  MutexLock lock(memory_.mutex);
  FinishHeld(load);
}

void TableFrames::FinishHeld(PageLoad* load) {
  const auto held = unfinished_.find(load);
  if (held == unfinished_.end()) return;
  const std::shared_ptr<PageLoad> keep = held->second;
  unfinished_.erase(held);
  const uint32_t group = load->place.group;
  const Lpn lpn = load->place.lpn;
  const auto found = loading_.find({group, lpn});
  const bool current = found != loading_.end() && found->second.get() == load;
  if (current) loading_.erase(found);
  if (load->memory) return;
  if (current && load->status.ok() && Holds(load->place) && !FrameOf(group, lpn).valid()) {
    Give(group, lpn, load->frame);
    return;
  }
  memory_.arena->Retire(pools_[group], load->frame);
}

// ---- Frames of pages.

void TableFrames::Give(size_t group, Lpn lpn, FrameRef frame) {
  pages_->residency(group, lpn).frame = frame;
  stats_.resident_bytes += pools_[group]->frame_bytes();
}

void TableFrames::DropFrame(size_t group, Lpn lpn) {
  index::GroupPageRecord& record = pages_->residency(group, lpn);
  memory_.arena->Retire(pools_[group], record.frame);
  record.frame = FrameRef{};
  stats_.resident_bytes -= pools_[group]->frame_bytes();
}

void TableFrames::Replace(size_t group, Lpn lpn, FrameRef frame) {
  const FrameRef before = FrameOf(group, lpn);
  if (before == frame) return;
  if (before.valid() && before != default_frame(group)) DropFrame(group, lpn);
  Give(group, lpn, frame);
}

void TableFrames::Retire(Lpn lpn) {
  bool has_cold = false;
  for (size_t g = 0; g < pools_.size(); ++g) {
    const bool may_be = may_be_cold_ && layout_->group(g).logged() && !layout_->group(g).dropped;
    if (may_be || (pages_->residency(g, lpn).flags & kPageHasCold) != 0) {
      has_cold = true;
      gone_bytes_ += layout_->group(g).pages.frame_bytes();
    }
    const FrameRef frame = FrameOf(g, lpn);
    if (frame.valid() && frame != default_frame(g)) DropFrame(g, lpn);
  }
  const index::PageRecord& page = pages_->page(lpn);
  if (has_cold) gone_.push_back({trajectories_->record(page.slot).id, page.page_number});
}

void TableFrames::Pack() {
  std::vector<FrameRef> moved;
  for (size_t g = 0; g < pools_.size(); ++g) {
    moved.push_back(default_frame(g));
    if (IsArenaFrame(moved[g])) memory_.arena->MoveDown(pools_[g], &moved[g]);
  }
  trajectories_->ForEach([&](Slot, const index::TrajectoryRecord& record) {
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
      for (size_t g = 0; g < pools_.size(); ++g) {
        FrameRef& frame = pages_->residency(g, lpn).frame;
        if (!frame.valid()) continue;
        if (frame == default_frame(g)) {
          frame = moved[g];
        } else {
          memory_.arena->MoveDown(pools_[g], &frame);
        }
      }
    }
  });
  for (size_t g = 0; g < pools_.size(); ++g) SetDefaults(g, moved[g]);
}

// ---- Dropping.

TableFrames::Fate TableFrames::FateOf(size_t group, Lpn lpn, const ReadableLog& log) const {
  const index::PageRecord& page = pages_->page(lpn);
  const index::GroupPageRecord& record = pages_->residency(group, lpn);
  if (page.in_use == 0 || !record.frame.valid() || record.frame == default_frame(group)) {
    return Fate::kStay;
  }
  if (memory_.loader == nullptr || layout_->group(group).dropped ||
      (record.flags & kPageHeld) != 0) {
    return Fate::kStay;
  }
  if (!layout_->group(group).logged()) return kBreak.drop_only_frame ? Fate::kGo : Fate::kStay;
  const bool goes_on = log.has_writers && page.next == kNoLpn &&
                       trajectories_->record(page.slot).state == index::TrajectoryState::kOpen;
  if (goes_on) return Fate::kStay;
  if ((record.flags & kPageInCold) != 0) return Fate::kGo;
  if (record.piece_at != kNoLsn) {
    const uint64_t bytes = PieceColumns(layout_->group(group).pages, record.rows_filled).bytes();
    return record.piece_at + bytes <= log.bytes ? Fate::kGo : Fate::kTooNew;
  }
  if (record.birth_lsn == kNoLsn) return Fate::kStay;
  // Of pieces, the first may have gone with their segments: the cold store has these (PageSource).
  return record.newest_lsn < log.records ? Fate::kGo : Fate::kTooNew;
}

TableFrames::DropOutcome TableFrames::Drop(const DropRequest& request) {
  DropOutcome outcome;
  Lpn& hand = hands_[request.group];
  const auto end = static_cast<Lpn>(pages_->reserved());
  while (outcome.dropped < request.frames && outcome.looks < request.looks_max && end > 0) {
    if (hand >= end) hand = 0;
    const Lpn lpn = hand++;
    ++outcome.looks;
    index::GroupPageRecord& record = pages_->residency(request.group, lpn);
    if (!record.frame.valid()) continue;
    if ((record.flags & kPageUsed) != 0) {
      record.flags = static_cast<uint8_t>(record.flags & ~kPageUsed);
      continue;
    }
    const Fate fate = FateOf(request.group, lpn, request.log);
    if (fate == Fate::kTooNew) ++outcome.too_new;
    if (fate != Fate::kGo) continue;
    DropFrame(request.group, lpn);
    ++outcome.dropped;
  }
  stats_.dropped += outcome.dropped;
  return outcome;
}

TableFrames::DropOutcome TableFrames::DropSlabs(const DropRequest& request, Lying lying) {
  DropOutcome outcome;
  const std::vector<uint32_t> shared = memory_.arena->SharedNow();
  std::unordered_map<uint64_t, std::vector<Lpn>> may_go;  // By first part.
  for (Lpn lpn = 0; lpn < pages_->reserved(); ++lpn) {
    ++outcome.looks;
    const FrameRef frame = FrameOf(request.group, lpn);
    if (!frame.valid()) continue;
    const bool in_part = std::binary_search(shared.begin(), shared.end(),
                                            static_cast<uint32_t>(frame.offset() / kSlabBytes));
    if (lying == (in_part ? Lying::kInOwnSlabs : Lying::kInSharedSlabs)) continue;
    const Fate fate = FateOf(request.group, lpn, request.log);
    if (fate == Fate::kTooNew) ++outcome.too_new;
    if (fate != Fate::kGo) continue;
    const uint64_t begin = AlignDown(frame.offset(), in_part ? kPartBytes : kSlabBytes);
    may_go[begin / kPartBytes].push_back(lpn);
  }
  for (const auto& [part, pages] : may_go) {
    if (outcome.dropped >= request.frames && lying != Lying::kInSharedSlabs) break;
    if (memory_.arena->FramesUsed(static_cast<uint32_t>(part)) != pages.size()) continue;
    for (const Lpn lpn : pages) DropFrame(request.group, lpn);
    outcome.dropped += pages.size();
  }
  stats_.dropped += outcome.dropped;
  return outcome;
}

}  // namespace geardb::engine
