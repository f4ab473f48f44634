// The draws of a seed are frozen: 1,000 batches of every selector, between which priorities are
// set, trajectories come and go, hash to the constants below, on every machine and in every
// version, also when the store is closed and opened again in the middle.
//
// With GEARDB_PRINT_FROZEN_DRAWS set the hashes are printed in the form of the table. A change of
// them is a change of the format: every stored seed draws something else from then on.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>

#include "base/hash.h"
#include "tests/conformance/plain_table.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::conformance {
namespace {

constexpr int kFrozenBatches = 1000;
constexpr int kBatchesPerHash = 250;

struct FrozenDraws {
  const char* priority_table;
  /// Of all batches so far, after each kBatchesPerHash.
  std::array<uint64_t, kFrozenBatches / kBatchesPerHash> hashes;
};

void PrintTo(const FrozenDraws& frozen, std::ostream* out) { *out << frozen.priority_table; }

constexpr FrozenDraws kFrozen[] = {
    {"uniform.window",
     {0x29AFE552F33AED22u, 0xE74DE0593C365D08u, 0xF12C49750381A66Cu, 0x5AD0915EB285AF79u}},
    {"uniform.trajectory",
     {0x8160AA9A85914843u, 0xF77FD390F7701695u, 0xEEE834BFD9E57B48u, 0xDF277FAA1BE2597Bu}},
    {"prioritized.window",
     {0xF55189F4BA775E3Cu, 0xD2F6629E0FF3C7C3u, 0x32A43FB67A40D4CDu, 0x55339AC69D067597u}},
    {"prioritized.trajectory",
     {0xF1243EFB5BF780E4u, 0x181D1195D1C8E2E5u, 0xB5A02FECF30B7C29u, 0x34BB16C3D51C9152u}},
};

template <typename T>
void AddTo(Hasher64* hasher, std::span<const T> values) {
  hasher->Add(std::as_bytes(values));
}

/// What a learner gets: items, their probabilities and weights, and the rows. Items are named by
/// their rows: ids may leave a gap at a reopen.
void AddBatch(const Batch& batch, Hasher64* hasher) {
  const uint64_t draw = batch.draw_number();
  AddTo(hasher, std::span<const uint64_t>(&draw, 1));
  AddTo(hasher, batch.anchors());
  AddTo(hasher, batch.lengths());
  AddTo(hasher, batch.probabilities());
  AddTo(hasher, batch.weights());
  const TensorView rows = batch["number"];
  hasher->Add({static_cast<const std::byte*>(rows.bytes), rows.byte_count()});
}

/// Priorities as a learner might set them: a function of what was drawn.
void SetPriorities(PriorityTable* priority_table, const Batch& batch) {
  const std::span<const uint32_t> numbers = batch["number"].values<uint32_t>();
  const size_t rows = numbers.size() / batch.handles().size();
  std::vector<float> priorities;
  for (size_t i = 0; i < batch.handles().size(); ++i) {
    const uint64_t mixed = uint64_t{numbers[i * rows]} * 7 + batch.draw_number() * 3;
    priorities.push_back(static_cast<float>(mixed % 61 + 1) / 16.0f);
  }
  EXPECT_OK(priority_table->Set(batch.handles(), priorities));
}

std::unique_ptr<Sampler> NewSampler(PlainTable* plain, const char* name) {
  SamplerOptions options;
  options.batch = 32;
  options.views = {View{.column = "number", .name = {}, .rows = {}}};
  auto sampler = plain->priority_table(name)->NewSampler(options);
  EXPECT_OK(sampler);
  return sampler.ok() ? std::move(*sampler) : nullptr;
}

/// Runs all batches and returns the hashes; opens the store anew before batch `reopen_at`.
std::array<uint64_t, 4> Draw(const char* name, int reopen_at) {
  const testing::TempDir directory;
  auto plain = std::make_unique<PlainTable>(directory.path());
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 50; ++i)
    ids.push_back(plain->AppendTrajectory(1 + i * 5 % 17, End::kTruncated));
  auto sampler = NewSampler(plain.get(), name);
  const bool prioritized =
      plain->priority_table(name)->spec().selector == SelectorKind::kPrioritized;
  std::array<uint64_t, 4> hashes{};
  Hasher64 hasher(0);
  for (int i = 0; i < kFrozenBatches && sampler != nullptr; ++i) {
    if (i == reopen_at) {
      sampler.reset();
      plain.reset();
      plain = std::make_unique<PlainTable>(directory.path());
      sampler = NewSampler(plain.get(), name);
      if (sampler == nullptr) break;
    }
    const auto batch = sampler->Next();
    EXPECT_OK(batch);
    if (!batch.ok()) break;
    AddBatch(*batch, &hasher);
    if (prioritized) SetPriorities(plain->priority_table(name).get(), *batch);
    if (i % 10 == 3) plain->AppendRow();
    if (i % 20 == 7) {
      ids.push_back(plain->AppendTrajectory(1 + i % 23, i % 3 == 0 ? End::kCut : End::kTerminated));
      if (ids.back() == 0) ids.pop_back();  // A cut left nothing.
    }
    if (i % 30 == 9) {
      plain->Remove(ids[static_cast<size_t>(i) % ids.size()]);
      ids.erase(ids.begin() + i % static_cast<int>(ids.size()));
    }
    if (i % kBatchesPerHash == kBatchesPerHash - 1) {
      hashes[static_cast<size_t>(i / kBatchesPerHash)] = hasher.Finish();
    }
  }
  return hashes;
}

class FrozenDrawsTest : public ::testing::TestWithParam<FrozenDraws> {};

TEST_P(FrozenDrawsTest, ASeedDrawsWhatItAlwaysDrew) {
  const auto hashes = Draw(GetParam().priority_table, -1);
  if (std::getenv("GEARDB_PRINT_FROZEN_DRAWS") != nullptr) {
    std::printf("    {\"%s\",\n     {", GetParam().priority_table);
    for (size_t i = 0; i < hashes.size(); ++i) {
      std::printf("%s0x%016llXu", i == 0 ? "" : ", ", static_cast<unsigned long long>(hashes[i]));
    }
    std::printf("}},\n");
  }
  EXPECT_EQ(hashes, GetParam().hashes);
}

TEST_P(FrozenDrawsTest, AReopenInTheMiddleChangesNothing) {
  EXPECT_EQ(Draw(GetParam().priority_table, 617), GetParam().hashes);
}

INSTANTIATE_TEST_SUITE_P(Selectors, FrozenDrawsTest, ::testing::ValuesIn(kFrozen),
                         [](const auto& tested) {
                           std::string name = tested.param.priority_table;
                           name[name.find('.')] = '_';
                           return name;
                         });

}  // namespace
}  // namespace geardb::conformance
