#include "engine/internal/epoch_state.h"

#include <vector>

#include "base/break.h"
#include "base/concatenate.h"

namespace geardb::engine {

bool EpochState::exhausted() const {
  if (selector_->epoch() == 0) return true;
  return PassIsOver() && (selector_->pass() >= spec_.passes || selector_->cut() == 0);
}

std::string EpochState::WhyUndrawable() const {
  const EpochMark at = mark();
  if (at.epoch == 0) return "no epoch has begun (BeginEpoch)";
  if (exhausted()) return Concatenate("epoch ", at.epoch, " is exhausted after pass ", at.pass);
  if (reserved() == 0) return "";
  return Concatenate(reserved(), " items of pass ", at.pass, " of epoch ", at.epoch,
                     " are drawn by other samplers and not handed over");
}

bool EpochState::IsCovered(uint64_t leaf) const {
  return selector_->pass() >= spec_.passes && selector_->InCut(leaf) && !selector_->Remains(leaf) &&
         !reserved_.contains(leaf);
}

EpochStats EpochState::Stats() const {
  return {.epoch = selector_->epoch(),
          .pass = selector_->pass(),
          .passes = spec_.passes,
          .items = selector_->cut(),
          .remaining = selector_->remaining() + reserved_.size(),
          .reserved = reserved_.size(),
          .exhausted = exhausted()};
}

void EpochState::Reserve(std::span<const uint64_t> leaves) {
  selector_->Take(leaves);
  reserved_.insert(leaves.begin(), leaves.end());
}

void EpochState::Cancel(const EpochMark& drawn, std::span<const uint64_t> leaves) {
  if (drawn != mark()) return;
  std::vector<uint64_t> back;
  for (const uint64_t leaf : leaves) {
    // A place whose item left, and came back, is in no draw.
    if (reserved_.erase(leaf) > 0) back.push_back(leaf);
  }
  selector_->GiveBack(back);
}

void EpochState::WillChangeAll() {
  if (watch_ != nullptr) watch_->BeforeChange(0, selector_->reserved());
}

void EpochState::Begin() {
  WillChangeAll();
  reserved_.clear();
  selector_->BeginEpoch();
}

void EpochState::Cover(const EpochMark& drawn, std::span<const uint64_t> leaves) {
  if (drawn != mark() || drawn.epoch == 0 || kBreak.cover_nothing) return;
  if (watch_ != nullptr) {
    for (const uint64_t leaf : leaves) watch_->BeforeChange(leaf, leaf + 1);
  }
  selector_->Take(leaves);
  Advance();
}

void EpochState::EndPass(const EpochMark& ended) {
  if (ended != mark() || ended.epoch == 0) return;
  WillChangeAll();
  reserved_.clear();
  selector_->TakeAll();
  Advance();
}

void EpochState::Erased(index::LeafRange range) {
  reserved_.erase(reserved_.lower_bound(range.begin), reserved_.lower_bound(range.end));
  Advance();
}

void EpochState::Advance() {
  if (selector_->epoch() == 0 || !PassIsOver()) return;
  if (selector_->pass() >= spec_.passes || selector_->cut() == 0) return;
  WillChangeAll();
  selector_->BeginPass();
}

}  // namespace geardb::engine
