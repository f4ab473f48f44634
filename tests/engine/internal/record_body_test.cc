#include "engine/internal/record_body.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

/// The bytes of a body, where a log has them: at a multiple of 8.
class Words {
 public:
  explicit Words(const flatbuffers::FlatBufferBuilder& builder)
      : words_((builder.GetSize() + 7) / 8), bytes_(builder.GetSize()) {
    std::memcpy(words_.data(), builder.GetBufferPointer(), bytes_);
  }
  std::span<const std::byte> span() const {
    return {reinterpret_cast<const std::byte*>(words_.data()), bytes_};
  }

 private:
  std::vector<uint64_t> words_;
  size_t bytes_;
};

Words Finish(flatbuffers::FlatBufferBuilder* builder, fb::Change type,
             flatbuffers::Offset<void> change) {
  const auto operation = fb::CreateOperation(*builder, 1, 0, type, change);
  builder->Finish(fb::CreateBody(*builder, builder->CreateVector(&operation, 1)));
  return Words(*builder);
}

Words Table(const std::vector<int64_t>& shape) {
  flatbuffers::FlatBufferBuilder builder;
  const auto column = fb::CreateColumnDirect(builder, "obs", 0, &shape);
  const auto spec =
      fb::CreateTableSpec(builder, builder.CreateString("t"), builder.CreateVector(&column, 1));
  return Finish(&builder, fb::Change::CreateTable, fb::CreateCreateTable(builder, spec).Union());
}

TEST(RecordBodyTest, WhatTheBuilderWritesIsRead) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {84, 84, 4}}) {
    const Words words = Table(shape);
    ASSERT_OK_AND_ASSIGN(const fb::Body* body, ReadBody(words.span()));
    const auto* stored = body->operations()->Get(0)->change_as_CreateTable()->spec()->columns();
    EXPECT_EQ(stored->Get(0)->shape()->size(), shape.size());
  }
}

// A call that set a column of so many trajectories was logged, and the store never opened again.
TEST(RecordBodyTest, ABodyMayHaveMoreThanAMillionTables) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::Operation>> operations;
  for (int i = 0; i < 500'001; ++i) {
    operations.push_back(fb::CreateOperation(builder, 1, 0, fb::Change::BeginEpoch,
                                             fb::CreateBeginEpoch(builder).Union()));
  }
  builder.Finish(fb::CreateBody(builder, builder.CreateVector(operations)));
  const Words words(builder);
  ASSERT_OK_AND_ASSIGN(const fb::Body* body, ReadBody(words.span()));
  EXPECT_EQ(body->operations()->size(), operations.size());
}

TEST(RecordBodyTest, BytesThatAreNoFlatBufferAreCorruption) {
  const Words words = Table({3});
  const std::vector<uint64_t> noise(8, 0xA5A5A5A5A5A5A5A5);
  EXPECT_STATUS(kCorruption, ReadBody(std::as_bytes(std::span(noise))), "no FlatBuffer");
  EXPECT_STATUS(kCorruption, ReadBody({}), "no FlatBuffer");
  EXPECT_STATUS(kCorruption, ReadBody(words.span().first(words.span().size() / 2)),
                "no FlatBuffer");
}

TEST(RecordBodyTest, AnOperationThatSaysNothingIsCorruption) {
  flatbuffers::FlatBufferBuilder builder;
  const Words words = Finish(&builder, fb::Change::NONE, 0);
  EXPECT_STATUS(kCorruption, ReadBody(words.span()), "says nothing");
}

TEST(RecordBodyTest, NumbersAtAnOddMultipleOfFourBytesAreCorruption) {
  bool seen[2] = {false, false};
  for (uint32_t padding = 0; padding < 2; ++padding) {
    flatbuffers::FlatBufferBuilder builder;
    // The whole becomes a multiple of 8 bytes; what comes before the item moves it by 4.
    builder.CreateVector(std::vector<uint64_t>(1));
    builder.CreateVector(std::vector<uint32_t>(padding + 1));
    // One item of two words, aligned like a word.
    const fb::Item item(7, 1, 0.5f);
    uint32_t halves[sizeof(item) / 4];
    std::memcpy(halves, &item, sizeof(item));
    builder.StartVector(std::size(halves), 4);
    for (size_t i = std::size(halves); i-- > 0;) builder.PushElement(halves[i]);
    const flatbuffers::Offset<flatbuffers::Vector<const fb::Item*>> items(builder.EndVector(1));
    const Words words = Finish(&builder, fb::Change::SetPriorities,
                               fb::CreateSetPriorities(builder, items).Union());
    const auto* read = flatbuffers::GetRoot<fb::Body>(words.span().data());
    const auto* vector = read->operations()->Get(0)->change_as_SetPriorities()->items();
    const bool aligned = reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
    seen[aligned ? 1 : 0] = true;
    EXPECT_EQ(ReadBody(words.span()).ok(), aligned);
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

}  // namespace
}  // namespace geardb::engine
