#include "engine/internal/record_body.h"

#include <cstdint>

namespace geardb::engine {
namespace {

// FlatBuffers' verifier checks how vectors lie by their length alone, which is 4 bytes: that is too
// little for elements with 8-byte numbers. A vector without elements may lie anywhere.
template <typename Element>
bool Aligned(const flatbuffers::Vector<Element>* vector) {
  return vector == nullptr || vector->size() == 0 ||
         reinterpret_cast<uintptr_t>(vector->Data()) % alignof(uint64_t) == 0;
}

// Every vector of operations.fbs whose elements hold 8-byte numbers.
bool VectorsAligned(const fb::Operation& operation) {
  switch (operation.change_type()) {
    case fb::Change::CreateTable:
      return ShapesAligned(operation.change_as_CreateTable()->spec());
    case fb::Change::Append: {
      const fb::Append& append = *operation.change_as_Append();
      return Aligned(append.removed()) && Aligned(append.trimmed()) && Aligned(append.opened()) &&
             Aligned(append.rows()) && Aligned(append.pieces());
    }
    case fb::Change::Patch:
      return Aligned(operation.change_as_Patch()->patched()) &&
             Aligned(operation.change_as_Patch()->pieces());
    case fb::Change::Close:
      return Aligned(operation.change_as_Close()->removed());
    case fb::Change::Remove:
      return Aligned(operation.change_as_Remove()->removed()) &&
             Aligned(operation.change_as_Remove()->trimmed());
    case fb::Change::HandOver: {
      const fb::HandOver& hand_over = *operation.change_as_HandOver();
      return Aligned(hand_over.items()) &&
             (hand_over.audit() == nullptr || Aligned(hand_over.audit()->rows()));
    }
    case fb::Change::DeleteItems:
      return Aligned(operation.change_as_DeleteItems()->items());
    case fb::Change::SetPriorities:
      return Aligned(operation.change_as_SetPriorities()->items());
    case fb::Change::SealGroups:
      return Aligned(operation.change_as_SealGroups()->groups());
    case fb::Change::AddColumns:
      return ShapesAligned(operation.change_as_AddColumns()->columns());
    default:
      return true;
  }
}

}  // namespace

bool ShapesAligned(const flatbuffers::Vector<flatbuffers::Offset<fb::Column>>* columns) {
  if (columns == nullptr) return true;
  for (const fb::Column* column : *columns) {
    if (!Aligned(column->shape())) return false;
  }
  return true;
}

bool ShapesAligned(const fb::TableSpec* spec) {
  return spec == nullptr || ShapesAligned(spec->columns());
}

Result<const fb::Body*> ReadBody(std::span<const std::byte> body) {
  // By default a million tables are too many, of a call that sets columns of as many trajectories.
  // Each takes eight bytes at least.
  flatbuffers::Verifier::Options options;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(body.size() / 8);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(body.data()), body.size(),
                                 options);
  if (!verifier.VerifyBuffer<fb::Body>()) {
    return Status::Corruption("its body of ", body.size(), " bytes is no FlatBuffer of operations");
  }
  const auto* read = flatbuffers::GetRoot<fb::Body>(body.data());
  if (read->operations() == nullptr) return read;
  for (uint32_t i = 0; i < read->operations()->size(); ++i) {
    const fb::Operation& operation = *read->operations()->Get(i);
    if (operation.change_type() == fb::Change::NONE || operation.change() == nullptr) {
      return Status::Corruption("operation ", i, " of its body says nothing");
    }
    if (!VectorsAligned(operation)) {
      return Status::Corruption("operation ", i, " of its body has a misaligned vector");
    }
  }
  return read;
}

}  // namespace geardb::engine
