#include "engine/internal/activity_tables.h"

#include <string>

#include "base/page_view.h"
#include "engine/activity_generated.h"

namespace geardb::engine {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// What is put around the tables of a file, at most.
constexpr uint64_t kAroundTables = 128;

Offset<fb::TableSeen> Encode(const TableActivity& table, FlatBufferBuilder* builder) {
  std::vector<Offset<fb::PlacesSeen>> places;
  for (const GroupPlaces& of : table.places) {
    const auto group = builder->CreateString(of.group);
    const auto column = builder->CreateString(of.column);
    places.push_back(fb::CreatePlacesSeen(*builder, group, column, of.frame_bytes, of.pages,
                                          of.framed, of.in_log, of.in_cold, of.in_both,
                                          of.only_framed));
  }
  std::vector<Offset<fb::PriorityTableSeen>> priorities;
  for (const PriorityTableActivity& of : table.priority_tables) {
    const auto name = builder->CreateString(of.name);
    const auto samples = builder->CreateString(of.blocked.samples.reason);
    const auto inserts = builder->CreateString(of.blocked.inserts.reason);
    priorities.push_back(fb::CreatePriorityTableSeen(*builder, name, of.items, of.drawable_items,
                                                     of.draws, samples, of.blocked.samples.waiting,
                                                     inserts, of.blocked.inserts.waiting));
  }
  const auto name = builder->CreateString(table.name);
  const auto all_places = builder->CreateVector(places);
  const auto all_priorities = builder->CreateVector(priorities);
  return fb::CreateTableSeen(*builder, table.id, name, table.trajectories, table.open_trajectories,
                             table.steps, table.pages, table.frame_bytes, table.row_bytes,
                             all_places, all_priorities);
}

std::string Text(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

/// `each` of what a vector that may be missing has.
template <typename Vector, typename Each>
void ForEach(const Vector* vector, const Each& each) {
  for (uint32_t i = 0; vector != nullptr && i < vector->size(); ++i) each(*vector->Get(i));
}

TableActivity Decode(const fb::TableSeen& seen) {
  TableActivity table{.id = seen.id(),
                      .name = Text(seen.name()),
                      .trajectories = seen.trajectories(),
                      .open_trajectories = seen.open(),
                      .steps = seen.steps(),
                      .pages = seen.pages(),
                      .frame_bytes = seen.frame_bytes(),
                      .row_bytes = seen.row_bytes()};
  ForEach(seen.places(), [&](const fb::PlacesSeen& of) {
    table.places.push_back({.group = Text(of.group()),
                            .frame_bytes = of.frame_bytes(),
                            .pages = of.pages(),
                            .framed = of.framed(),
                            .in_log = of.in_log(),
                            .in_cold = of.in_cold(),
                            .in_both = of.in_both(),
                            .only_framed = of.only_framed(),
                            .column = Text(of.column())});
  });
  ForEach(seen.priority_tables(), [&](const fb::PriorityTableSeen& of) {
    table.priority_tables.push_back(
        {.name = Text(of.name()),
         .items = of.items(),
         .drawable_items = of.drawable_items(),
         .draws = of.draws(),
         .blocked = {.samples = {Text(of.samples_wait_for()), of.samples_waiting()},
                     .inserts = {Text(of.inserts_wait_for()), of.inserts_waiting()}}});
  });
  return table;
}

}  // namespace

std::vector<std::byte> EncodeTables(const TablesActivity& tables, uint64_t bytes_max) {
  FlatBufferBuilder builder;
  std::vector<Offset<fb::TableSeen>> seen;
  for (const TableActivity& table : tables.tables) {
    FlatBufferBuilder alone;
    alone.Finish(Encode(table, &alone));
    const uint64_t places = (seen.size() + 1) * sizeof(Offset<fb::TableSeen>);
    if (builder.GetSize() + alone.GetSize() + places + kAroundTables > bytes_max) break;
    seen.push_back(Encode(table, &builder));
  }
  const uint64_t left_out = tables.left_out + tables.tables.size() - seen.size();
  builder.Finish(
      fb::CreateTablesSeen(builder, builder.CreateVector(seen), left_out, tables.seen_us));
  const auto whole = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  std::vector<std::byte> bytes(whole.begin(), whole.end());
  bytes.resize(AlignUp(bytes.size(), sizeof(uint64_t)));
  return bytes;
}

std::optional<TablesActivity> DecodeTables(std::span<const std::byte> bytes) {
  const auto* const words = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(words, bytes.size());
  if (!verifier.VerifyBuffer<fb::TablesSeen>(nullptr)) return std::nullopt;
  const auto* seen = flatbuffers::GetRoot<fb::TablesSeen>(words);
  TablesActivity tables{.left_out = seen->left_out(), .seen_us = seen->seen_us()};
  ForEach(seen->tables(),
          [&](const fb::TableSeen& table) { tables.tables.push_back(Decode(table)); });
  return tables;
}

}  // namespace geardb::engine
