#include "engine/internal/clean_reads.h"

#include <algorithm>
#include <utility>

namespace geardb::engine {

CleanReads::~CleanReads() {
  Wait(loads_);
  Wait(ahead_);
}

void CleanReads::Wait(const Loads& loads) const {
  for (const auto& load : loads) {
    if (load != nullptr) database_->page_loader->Wait(load.get());
  }
}

void CleanReads::Leave(std::shared_ptr<PageLoad> load) {
  if (load == nullptr) return;
  database_->page_loader->Wait(load.get());
  spare_.push_back(std::move(load->memory));
}

std::shared_ptr<PageLoad> CleanReads::BeginLoad(const PagePlace& place) {
  const TableFrames& frames = state_.frames();
  // Not counted with pages beside the frames, of which others would have less.
  if (spare_.empty()) spare_.push_back(NewPageMemory(frames.AsideBytes(place.group)));
  PageMemory memory = std::move(spare_.back());
  spare_.pop_back();
  PagePlace in_order = place;
  in_order.in_order = true;
  return frames.LoadAside(in_order, std::move(memory));
}

std::shared_ptr<PageLoad> CleanReads::TakeAhead(const PagePlace& place) {
  const auto found = std::find_if(ahead_.begin(), ahead_.end(), [&](const auto& load) {
    return load != nullptr && load->place.lpn == place.lpn &&
           load->place.generation == place.generation &&
           load->place.newest_lsn == place.newest_lsn && load->place.rows == place.rows;
  });
  return found == ahead_.end() ? nullptr : std::exchange(*found, nullptr);
}

void CleanReads::Begin(std::span<const ColdWork> work) {
  work_ = work;
  for (auto& load : loads_) Leave(std::move(load));
  loads_.assign(work.size(), nullptr);
  for (size_t at = 0; at < work.size(); ++at) {
    if (work[at].frame.valid()) continue;
    loads_[at] = TakeAhead(work[at].place);
    if (loads_[at] == nullptr) loads_[at] = BeginLoad(work[at].place);
  }
}

void CleanReads::BeginAhead(std::span<const ColdWork> work) {
  Loads begun;
  for (const ColdWork& page : work) {
    if (page.frame.valid()) continue;
    begun.push_back(TakeAhead(page.place));
    if (begun.back() == nullptr) begun.back() = BeginLoad(page.place);
  }
  for (auto& load : ahead_) Leave(std::move(load));
  ahead_ = std::move(begun);
}

Result<const std::byte*> CleanReads::Bytes(size_t at) {
  Leave(std::exchange(last_, nullptr));
  if (loads_[at] == nullptr) return database_->arena->Resolve(work_[at].frame);
  database_->page_loader->Wait(loads_[at].get());
  last_ = std::move(loads_[at]);
  GEARDB_RETURN_IF_ERROR(last_->status);
  return last_->into;
}

}  // namespace geardb::engine
