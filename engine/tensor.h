// TensorView: a typed, shaped, C-contiguous array in memory that somebody else owns. It is how
// rows enter the store and how batches leave it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace geardb {

/// Up to 8 dimensions, outermost first. A scalar has none. Trivially copyable.
class Shape {
 public:
  static constexpr int kRankMax = 8;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> dims) {
    for (const int64_t dim : dims) Append(dim);
  }
  constexpr explicit Shape(std::span<const int64_t> dims) {
    for (const int64_t dim : dims) Append(dim);
  }

  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  constexpr std::span<const int64_t> dims() const {
    return {dims_.data(), static_cast<size_t>(rank_ < kRankMax ? rank_ : kRankMax)};
  }
  /// Product of the dimensions; 1 for a scalar.
  constexpr int64_t elements() const {
    int64_t product = 1;
    for (const int64_t dim : dims()) product *= dim;
    return product;
  }
  /// Adds an innermost dimension. One beyond kRankMax is dropped, and the rank kRankMax + 1 says
  /// so: a schema or an append with such a shape is refused.
  constexpr void Append(int64_t dim) {
    if (rank_ < kRankMax) dims_[static_cast<size_t>(rank_)] = dim;
    rank_ = rank_ <= kRankMax ? rank_ + 1 : rank_;
  }
  /// `outer` followed by this shape's dimensions.
  constexpr Shape WithOuter(std::initializer_list<int64_t> outer) const {
    Shape shape(outer);
    for (const int64_t dim : dims()) shape.Append(dim);
    return shape;
  }
  /// "[2, 84, 84]".
  std::string ToString() const;

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_ && i < kRankMax; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  std::array<int64_t, kRankMax> dims_{};
  int rank_ = 0;
};

/// A view of a C-contiguous array. Owns nothing; the memory must outlive the call it is given to
/// (or the Batch it came from).
struct TensorView {
  const void* bytes = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  TensorView() = default;
  TensorView(const void* bytes_in, DType dtype_in, Shape shape_in)
      : bytes(bytes_in), dtype(dtype_in), shape(shape_in) {}
  /// A scalar.
  template <typename T>
  static TensorView Scalar(const T& value) {
    return TensorView(&value, kDTypeOf<T>, Shape());
  }
  /// A vector, or an array of shape `shape_in`, of which the product of dimensions must be
  /// `values.size()`.
  template <typename T>
  static TensorView Of(std::span<const T> values) {
    return TensorView(values.data(), kDTypeOf<T>, Shape({static_cast<int64_t>(values.size())}));
  }
  template <typename T>
  static TensorView Of(std::span<const T> values, Shape shape_in) {
    return TensorView(values.data(), kDTypeOf<T>, shape_in);
  }

  size_t byte_count() const { return static_cast<size_t>(shape.elements()) * DTypeBytes(dtype); }
  /// The elements as `T`, which must be the element type of `dtype` (else an empty span).
  template <typename T>
  std::span<const T> values() const {
    if (kDTypeOf<T> != dtype) return {};
    return {static_cast<const T*>(bytes), static_cast<size_t>(shape.elements())};
  }
};

/// A column's name and its rows.
struct ColumnValue {
  std::string_view column;
  TensorView value;
  /// Of ragged columns, and of blobs for many lanes: `value` has the rows of all, one behind the
  /// other, and value i is rows [offsets[i], offsets[i + 1]). The first is 0, the last the number
  /// of rows. Empty for one value.
  std::span<const uint64_t> offsets = {};
};
using ColumnValues = std::span<const ColumnValue>;

}  // namespace geardb
