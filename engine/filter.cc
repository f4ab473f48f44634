#include "engine/filter.h"

#include <utility>

#include "engine/internal/filter_expression.h"

namespace geardb {

Filter::Filter(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Filter Filter::All() { return Filter(std::make_shared<const Impl>()); }

Result<Filter> Filter::Parse(std::string_view text) {
  auto impl = std::make_shared<Impl>();
  GEARDB_ASSIGN_OR_RETURN(impl->expression, engine::ParseFilter(text));
  return Filter(std::move(impl));
}

std::string Filter::ToString() const { return engine::PrintFilter(impl_->expression); }

bool operator==(const Filter& a, const Filter& b) {
  return a.impl_->expression == b.impl_->expression;
}

}  // namespace geardb
