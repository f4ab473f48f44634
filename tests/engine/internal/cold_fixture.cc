#include "tests/engine/internal/cold_fixture.h"

#include <algorithm>
#include <cstring>

#include "base/concatenate.h"

namespace geardb::testing {

using engine::ColdBatch;
using engine::ColdChunk;
using engine::ColdChunkKey;
using engine::ColdPageHeader;
using engine::ColdPageKey;
using engine::ColdRead;
using engine::ColdStore;
using engine::ColumnCodec;
using engine::ColumnCodecSpec;

namespace {

constexpr std::byte kUntouched{0xEE};
constexpr uint64_t kGroups = 2;
constexpr uint64_t kPagesMax = 3;
constexpr uint64_t kChunks = 4;

uint64_t SeedOf(const ColdPageKey& key, uint64_t generation) {
  return key.trajectory * 1000003 + key.page * 8191 + key.table * 131 + key.group * 17 +
         generation * 0x9E3779B97F4A7C15ull;
}

}  // namespace

const PageLayout& ColdLayout() {
  static const std::vector<uint64_t> kRows = {4, 48, 1, 1024};
  static const PageLayout layout(kRows, 8);
  return layout;
}

std::vector<std::byte> ColdFrameOf(const ColdPageKey& key, const ColdPageHeader& header) {
  const PageLayout& layout = ColdLayout();
  std::vector<std::byte> frame(layout.frame_bytes(), kUntouched);
  Random random(SeedOf(key, header.generation));
  std::vector<std::byte> picture(layout.region(3).row_bytes);
  for (std::byte& byte : picture) byte = static_cast<std::byte>(random.Next());
  for (uint32_t row = 0; row < header.rows; ++row) {
    const uint32_t counter = static_cast<uint32_t>(header.generation + row);
    std::memcpy(frame.data() + layout.FrameOffset(0, row), &counter, sizeof(counter));
    for (uint64_t i = 0; i < layout.region(1).row_bytes; ++i) {
      frame[layout.FrameOffset(1, row) + i] = static_cast<std::byte>(random.Next());
    }
    frame[layout.FrameOffset(2, row)] = std::byte{0};
    picture[random.Below(picture.size())] ^= std::byte{1};
    std::copy(picture.begin(), picture.end(),
              frame.begin() + static_cast<ptrdiff_t>(layout.FrameOffset(3, row)));
  }
  return frame;
}

std::vector<std::byte> ColdChunkBytes(const ColdChunkKey& key, uint64_t lsn) {
  Random random(key.chunk * 77 + key.kind + lsn * 1315423911);
  std::vector<std::byte> bytes(random.Below(3) == 0 ? random.Below(200) : random.Below(60000));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
  return bytes;
}

Status PutColdPage(const ColdPageKey& key, const ColdPageHeader& header, ColdBatch* batch) {
  static constexpr ColumnCodecSpec kCodecs[] = {
      {ColumnCodec::kZstd, 3}, {ColumnCodec::kLz4}, {ColumnCodec::kNone}, {ColumnCodec::kXorLz4}};
  const std::vector<std::byte> frame = ColdFrameOf(key, header);
  return batch->PutPage(key, {&ColdLayout(), frame, header, kCodecs});
}

Status CheckColdPage(ColdStore* store, const ColdPageKey& key, const ColdPageHeader& expected) {
  std::vector<std::byte> frame(ColdLayout().frame_bytes(), kUntouched);
  ColdRead read = {.key = key, .layout = &ColdLayout(), .frame = frame};
  GEARDB_RETURN_IF_ERROR(store->ReadPages({&read, 1}));
  if (read.header.generation != expected.generation || read.header.rows != expected.rows ||
      frame != ColdFrameOf(key, expected)) {
    return Status::Internal(ColdKeyText(key), ": generation ", read.header.generation, " of ",
                            read.header.rows, " rows, or its bytes, are not as put: generation ",
                            expected.generation, " of ", expected.rows);
  }
  return Status::Ok();
}

engine::ColdStoreOptions SmallColdOptions() {
  engine::ColdStoreOptions options;
  options.memory_bytes = uint64_t{1} << 20;
  options.blob_file_bytes = uint64_t{64} << 10;
  options.sst_file_bytes = uint64_t{8} << 10;
  options.background_threads = 1;
  return options;
}

Status ColdModel::Put(const ColdPageKey& key, Random* random, ColdBatch* batch) {
  const ColdPageHeader header = {step_, static_cast<uint32_t>(random->Below(9))};
  pages_[key] = header;
  return batch == nullptr ? Status::Ok() : PutColdPage(key, header, batch);
}

Status ColdModel::Append(Random* random, ColdBatch* batch) {
  for (uint64_t count = 1 + random->Below(6); count > 0; --count) {
    const uint64_t id = next_id_++;
    for (uint16_t group = 0; group < kGroups; ++group) {
      for (uint64_t page = random->Below(kPagesMax + 1); page-- > 0;) {
        const uint32_t table = table_ - static_cast<uint32_t>(random->Below(2));
        GEARDB_RETURN_IF_ERROR(Put({table, 0, group, id, page}, random, batch));
      }
    }
  }
  return Status::Ok();
}

Status ColdModel::Remove(const engine::ColdTrajectoryRange& range, ColdBatch* batch) {
  std::erase_if(pages_, [&](const auto& page) {
    const ColdPageKey& key = page.first;
    return key.table == range.table && key.partition == range.partition &&
           key.group == range.group && key.trajectory >= range.first && key.trajectory < range.end;
  });
  return batch == nullptr ? Status::Ok() : batch->DeleteTrajectoryPages(range);
}

Status ColdModel::RemoveOldest(Random* random, ColdBatch* batch) {
  const uint64_t end = oldest_id_ + random->Below((next_id_ - oldest_id_) / 4 + 1);
  for (uint16_t group = 0; group < kGroups; ++group) {
    for (const uint32_t table : {table_ - 1, table_}) {
      GEARDB_RETURN_IF_ERROR(Remove({table, 0, group, oldest_id_, end}, batch));
    }
  }
  oldest_id_ = end;
  return Status::Ok();
}

Status ColdModel::RemoveSome(Random* random, ColdBatch* batch) {
  const uint64_t first = random->Below(next_id_);
  const uint64_t end = std::min(next_id_, first + random->Below(5));
  GEARDB_RETURN_IF_ERROR(Remove({table_, 0, 0, first, end}, batch));
  // And single pages.
  for (int i = 0; i < 8 && !pages_.empty(); ++i) {
    auto page = pages_.lower_bound({table_, 0, 0, random->Below(next_id_), 0});
    if (page == pages_.end()) page = pages_.begin();
    if (batch != nullptr) batch->DeletePage(page->first);
    pages_.erase(page);
  }
  return Status::Ok();
}

Status ColdModel::ChangeChunk(Random* random, ColdBatch* batch) {
  const ColdChunkKey key = {table_, 0, static_cast<uint16_t>(random->Below(2)),
                            random->Below(kChunks)};
  if (random->OneIn(4)) {
    chunks_.erase(key);
    if (batch != nullptr) batch->DeleteChunk(key);
    return Status::Ok();
  }
  chunks_[key] = LsnOf(step_);
  return batch == nullptr ? Status::Ok()
                          : batch->PutChunk(key, LsnOf(step_), ColdChunkBytes(key, LsnOf(step_)));
}

void ColdModel::DropTable(ColdBatch* batch) {
  const uint32_t dropped = table_ - 1;
  ++table_;
  std::erase_if(pages_, [&](const auto& page) { return page.first.table == dropped; });
  std::erase_if(chunks_, [&](const auto& chunk) { return chunk.first.table == dropped; });
  if (batch != nullptr) batch->DeleteTable(dropped);
}

Status ColdModel::Step(ColdBatch* batch) {
  ++step_;
  Random random(seed_ * 1000003 + step_);
  GEARDB_RETURN_IF_ERROR(Append(&random, batch));
  if (!pages_.empty() && random.OneIn(2)) {  // A page once more.
    auto page = pages_.lower_bound({table_, 0, 0, random.Below(next_id_), 0});
    if (page == pages_.end()) page = pages_.begin();
    GEARDB_RETURN_IF_ERROR(Put(page->first, &random, batch));
  }
  if (random.OneIn(3)) GEARDB_RETURN_IF_ERROR(RemoveOldest(&random, batch));
  if (random.OneIn(4)) GEARDB_RETURN_IF_ERROR(RemoveSome(&random, batch));
  if (random.OneIn(2)) GEARDB_RETURN_IF_ERROR(ChangeChunk(&random, batch));
  if (random.OneIn(40)) DropTable(batch);
  return Status::Ok();
}

void ColdModel::StepTo(uint64_t step) {
  while (step_ < step) (void)Step(nullptr);
}

std::string ColdModel::Compare(ColdStore* store) const {
  std::string wrong;
  auto expected = pages_.begin();
  const Status listed = store->ForEachPage([&](const ColdPageKey& key, const ColdPageHeader&) {
    if (expected == pages_.end() || key != expected->first) {
      return Status::Internal("found ", ColdKeyText(key), ", expected ",
                              expected == pages_.end() ? "none" : ColdKeyText(expected->first));
    }
    ++expected;
    return Status::Ok();
  });
  if (!listed.ok()) return std::string(listed.message());
  if (expected != pages_.end()) return ColdKeyText(expected->first) + " is missing";
  for (const auto& [key, header] : pages_) {
    const Status page = CheckColdPage(store, key, header);
    if (!page.ok()) return page.ToString();
  }
  std::map<ColdChunkKey, uint64_t> found;
  for (uint32_t table = 0; table <= table_; ++table) {
    for (uint16_t kind = 0; kind < 2; ++kind) {
      const Status visited =
          store->ForEachChunk({table, 0, kind, 0}, [&](const ColdChunkKey& key, ColdChunk chunk) {
            found[key] = chunk.lsn;
            const std::vector<std::byte> bytes = ColdChunkBytes(key, chunk.lsn);
            const bool same =
                bytes.size() == chunk.bytes.size() &&
                (bytes.empty() || std::memcmp(bytes.data(), chunk.bytes.data(), bytes.size()) == 0);
            return same ? Status::Ok() : Status::Internal(ColdKeyText(key), " differs");
          });
      if (!visited.ok()) return visited.ToString();
    }
  }
  if (found != chunks_) return Concatenate(found.size(), " chunks, not ", chunks_.size());
  return wrong;
}

}  // namespace geardb::testing
