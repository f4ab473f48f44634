#include "engine/internal/aside_pages.h"

#include <utility>

#include "base/break.h"

namespace geardb::engine {
namespace {

/// Pages read ahead, at most: more than threads read at once.
constexpr size_t kAhead = 32;

PageLoader& LoaderOf(const AsidePage& page) { return page.frames->loader(); }

}  // namespace

std::vector<const AsidePage*> AllOf(const std::vector<AsidePage>& pages) {
  std::vector<const AsidePage*> all;
  all.reserve(pages.size());
  for (const AsidePage& page : pages) all.push_back(&page);
  return all;
}

AsideReader::~AsideReader() {
  for (size_t i = 0; i < loads_.size(); ++i) LoaderOf(*pages_[first_ + i]).Wait(loads_[i].get());
}

bool AsideReader::HasRoom() const {
  if (loads_.empty()) return true;
  if constexpr (kBreak.read_beside_budget) return true;
  if (loads_.size() >= kAhead) return false;
  const AsidePage& next = *pages_[first_ + loads_.size()];
  const uint64_t bytes = next.frames->AsideBytes(next.place.group);
  if (spare_ != nullptr && spare_.get_deleter().bytes >= bytes) return true;
  return LoaderOf(next).HasRoomBeside(bytes);
}

Result<const std::byte*> AsideReader::Get(size_t number) {
  for (; first_ < number; ++first_) {
    if (loads_.empty()) continue;
    LoaderOf(*pages_[first_]).Wait(loads_.front().get());
    spare_ = std::move(loads_.front()->memory);
    loads_.pop_front();
  }
  while (first_ + loads_.size() < pages_.size() && HasRoom()) {
    const AsidePage& next = *pages_[first_ + loads_.size()];
    loads_.push_back(next.frames->LoadAside(next.place, std::exchange(spare_, nullptr)));
  }
  PageLoad* load = loads_.front().get();
  LoaderOf(*pages_[first_]).Wait(load);
  GEARDB_RETURN_IF_ERROR(load->status);
  return load->into;
}

}  // namespace geardb::engine
