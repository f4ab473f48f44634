#include "engine/schema.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StepSpec;
using testing::WindowSpec;

TableSpec FullSpec() {
  TableSpec spec = StepSpec(true);
  spec.priority_tables = {WindowSpec("per", {.before = 1, .length = 2, .after = 1})};
  return spec;
}

/// The spec with one change.
template <typename Change>
TableSpec With(const Change& change) {
  TableSpec spec = FullSpec();
  change(spec);
  return spec;
}

TEST(SchemaTest, GoodSpecIsAccepted) { EXPECT_OK(ValidateTableSpec(FullSpec())); }

TEST(SchemaTest, NamesAreChecked) {
  for (const std::string& name :
       {std::string(), std::string(65, 'a'), std::string("a b"), std::string("ä"),
        std::string("geardb.x"), std::string("a\0b", 3)}) {
    EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([&](auto& s) { s.name = name; })),
                  "table name");
    EXPECT_STATUS(kInvalidArgument,
                  ValidateTableSpec(With([&](auto& s) { s.columns[1].name = name; })),
                  "column name");
    EXPECT_STATUS(kInvalidArgument,
                  ValidateTableSpec(With([&](auto& s) { s.priority_tables[0].name = name; })),
                  "priority table name");
  }
  EXPECT_OK(ValidateTableSpec(With([](auto& s) { s.columns[1].name = std::string(64, 'a'); })));
  EXPECT_OK(ValidateTableSpec(With([](auto& s) { s.columns[1].name = "a.B/c-d_9"; })));
}

TEST(SchemaTest, NamesAppearOnce) {
  EXPECT_STATUS(kInvalidArgument,
                ValidateTableSpec(With([](auto& s) { s.columns[1].name = "obs"; })),
                "two columns named 'obs'");
  EXPECT_STATUS(
      kInvalidArgument,
      ValidateTableSpec(With([](auto& s) { s.priority_tables.push_back(s.priority_tables[0]); })),
      "two priority tables named 'per'");
}

TEST(SchemaTest, ShapesAreChecked) {
  EXPECT_STATUS(kInvalidArgument,
                ValidateTableSpec(With([](auto& s) { s.columns[0].shape = {0}; })), "'obs'");
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([](auto& s) {
                  s.columns[0].shape = {2, -1};
                })),
                "[2, -1]");
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([](auto& s) {
                  s.columns[0].shape = {int64_t{1} << 40, int64_t{1} << 40};
                })),
                "'obs'");
  EXPECT_OK(ValidateTableSpec(With([](auto& s) { s.columns[0].shape = {2, 1, 1, 1, 1}; })));
}

TEST(SchemaTest, ShapesThatCannotBeDrawnAreRefused) {
  // A batch puts [batch, rows, stack] before a row's shape, and a Shape has at most 8 dimensions.
  const auto refuse = [](const Shape& shape, const std::string& text) {
    EXPECT_STATUS(kInvalidArgument,
                  ValidateTableSpec(With([&](auto& s) { s.columns[0].shape = shape; })), text);
  };
  refuse({1, 1, 1, 1, 1, 2}, "column 'obs' has 6 dimensions; at most 5 can be drawn");
  refuse({1, 1, 1, 1, 1, 1, 1, 2}, "column 'obs' has 8 dimensions; at most 5");
  refuse({1, 1, 1, 1, 1, 1, 1, 1, 2}, "column 'obs' has more than 8 dimensions; at most 5");
  EXPECT_STATUS(kInvalidArgument,
                ValidateTableSpec(With([](auto& s) { s.columns[3].shape = {1, 1, 1, 1, 1, 2}; })),
                "column 'version' has 6 dimensions; at most 5");
}

TEST(SchemaTest, UnknownEnumerationsAreRefused) {
  EXPECT_STATUS(
      kInvalidArgument,
      ValidateTableSpec(With([](auto& s) { s.columns[0].dtype = static_cast<DType>(13); })),
      "dtype 13");
  EXPECT_STATUS(
      kInvalidArgument,
      ValidateTableSpec(With([](auto& s) { s.columns[1].kind = static_cast<ColumnKind>(4); })),
      "kind 4");
  EXPECT_STATUS(kInvalidArgument,
                ValidateTableSpec(With([](auto& s) { s.remover = static_cast<Remover>(6); })),
                "remover");
  using Priority = PriorityTableSpec;
  const std::function<void(Priority&)> changes[] = {
      [](Priority& p) { p.item = static_cast<ItemKind>(3); },
      [](Priority& p) { p.selector = static_cast<SelectorKind>(8); },
      [](Priority& p) { p.initial = static_cast<InitialPriority>(3); },
      [](Priority& p) { p.window.left = static_cast<EdgeRule>(5); },
      [](Priority& p) { p.window.right = static_cast<EdgeRule>(5); }};
  for (const auto& change : changes) {
    EXPECT_STATUS(kInvalidArgument,
                  ValidateTableSpec(With([&](auto& s) { change(s.priority_tables[0]); })),
                  "unknown");
  }
}

TEST(SchemaTest, PerTrajectoryColumnsAreBoundedAndNotInFinalRows) {
  EXPECT_OK(ValidateTableSpec(With([](auto& s) { s.columns[3].shape = {17}; })));
  EXPECT_OK(ValidateTableSpec(With([](auto& s) { s.columns[3].shape = {1 << 24}; })));
  EXPECT_STATUS(kInvalidArgument,
                ValidateTableSpec(With([](auto& s) { s.columns[3].shape = {(1 << 24) + 1}; })),
                "at most 67108864 bytes");
  EXPECT_STATUS(kInvalidArgument,
                ValidateTableSpec(With([](auto& s) { s.columns[3].in_final_row = true; })),
                "'version'");
}

TEST(SchemaTest, FinalColumnsNeedFinalRow) {
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([](auto& s) { s.final_row = false; })),
                "'obs'");
}

TEST(SchemaTest, AStepColumnIsNeeded) {
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([](auto& s) { s.columns.clear(); })),
                "no per-step column");
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([](auto& s) {
                  s.columns.erase(s.columns.begin(), s.columns.begin() + 3);
                })),
                "no per-step column");
}

TEST(SchemaTest, PageSizesAreChecked) {
  for (const uint32_t steps : {3u, 6u, 512u, UINT32_MAX}) {
    EXPECT_STATUS(kInvalidArgument,
                  ValidateTableSpec(With([&](auto& s) { s.steps_per_page = steps; })),
                  "steps_per_page");
  }
  for (const uint32_t steps : {0u, 1u, 2u, 256u}) {
    EXPECT_OK(ValidateTableSpec(With([&](auto& s) { s.steps_per_page = steps; })));
  }
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([](auto& s) { s.expected_steps = 0; })),
                "0 steps");
}

TEST(SchemaTest, ARowOfAnOpenTrajectoryStaysSoMoreMustFit) {
  for (const bool final_row : {false, true}) {
    const auto bounded = [&](uint64_t steps) {
      TableSpec spec = testing::StepSpec(final_row);
      spec.steps_max = steps;
      return spec;
    };
    const uint64_t least = final_row ? 3 : 2;
    EXPECT_OK(ValidateTableSpec(bounded(0)));
    EXPECT_OK(ValidateTableSpec(bounded(least)));
    EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(bounded(least - 1)), "steps_max");
    EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(bounded(1)), "steps_max 1");
  }
}

TEST(SchemaTest, WindowsAreChecked) {
  const auto window = [](const Extent& extent, int64_t stride) {
    return With([&](auto& s) {
      s.priority_tables[0].window.extent = extent;
      s.priority_tables[0].window.stride = stride;
    });
  };
  EXPECT_OK(ValidateTableSpec(window({0, 1, 0}, 1)));
  const int64_t many = std::numeric_limits<int64_t>::max();
  for (const Extent& extent : {Extent{-1, 1, 0}, Extent{0, 0, 0}, Extent{0, 1, -1},
                               Extent{many, 1, 0}, Extent{0, many, 0}, Extent{0, 1, many}}) {
    EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(window(extent, 1)), "extent {before");
  }
  for (const int64_t stride : {int64_t{0}, int64_t{-1}, many}) {
    EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(window({0, 1, 0}, stride)), "stride");
  }
  EXPECT_STATUS(
      kInvalidArgument,
      ValidateTableSpec(With([](auto& s) { s.priority_tables[0].window.cross_ends = true; })),
      "no stream");
}

TEST(SchemaTest, PrioritiesAreChecked) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double alpha : {-0.1, 4.1, inf, std::nan("")}) {
    EXPECT_STATUS(kInvalidArgument,
                  ValidateTableSpec(With([&](auto& s) { s.priority_tables[0].alpha = alpha; })),
                  "alpha");
  }
  for (const float value : {-1.0f, static_cast<float>(inf), std::nanf("")}) {
    EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([&](auto& s) {
                    s.priority_tables[0].initial = InitialPriority::kConstant;
                    s.priority_tables[0].initial_priority_value = value;
                  })),
                  "initial priority");
  }
  // One that nothing uses too: it would never equal what is stored.
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([](auto& s) {
                  s.priority_tables[0].initial_priority_value = std::nanf("");
                })),
                "initial priority");
  for (const char* column : {"", "nothing", "obs", "action", "version"}) {
    EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(With([&](auto& s) {
                    s.priority_tables[0].initial = InitialPriority::kColumn;
                    s.priority_tables[0].initial_priority_column = column;
                  })),
                  "from column '");
  }
  EXPECT_OK(ValidateTableSpec(With([](auto& s) {
    s.priority_tables[0].initial = InitialPriority::kColumn;
    s.priority_tables[0].initial_priority_column = "score";
  })));
}

TEST(SchemaTest, SameSpecMayBeOpened) {
  EXPECT_OK(CheckSameSpec(FullSpec(), FullSpec()));
  // What only a creation looks at, or what the table has more of, is no difference.
  EXPECT_OK(CheckSameSpec(FullSpec(), With([](auto& s) { s.steps_per_page = 0; })));
  EXPECT_OK(CheckSameSpec(FullSpec(), With([](auto& s) { s.expected_steps = 5; })));
  EXPECT_OK(CheckSameSpec(FullSpec(), With([](auto& s) { s.priority_tables.clear(); })));
}

TEST(SchemaTest, FirstDifferenceIsNamed) {
  struct Case {
    std::function<void(TableSpec&)> change;
    const char* named;
  };
  const Case cases[] = {
      {[](TableSpec& s) { s.columns[1].name = "act"; }, "column action, not act"},
      {[](TableSpec& s) { s.columns[1].dtype = DType::kI64; }, "column 'action' as i32"},
      {[](TableSpec& s) { s.columns[0].shape = {3}; }, "[3]"},
      {[](TableSpec& s) { s.columns[0].in_final_row = false; }, "column 'obs'"},
      {[](TableSpec& s) { s.columns[3].kind = ColumnKind::kPerStep; }, "per step"},
      {[](TableSpec& s) { s.columns.pop_back(); }, "columns: 5, not 4"},
      {[](TableSpec& s) { s.final_row = false; }, "final_row"},
      {[](TableSpec& s) { s.stream = true; }, "stream"},
      {[](TableSpec& s) { s.steps_per_page = 8; }, "steps_per_page 4, not 8"},
      {[](TableSpec& s) { s.trajectories_max = 8; }, "trajectories_max 0, not 8"},
      {[](TableSpec& s) { s.steps_max = 8; }, "steps_max 0, not 8"},
      {[](TableSpec& s) { s.bytes_max = 8; }, "bytes_max 0, not 8"},
      {[](TableSpec& s) { s.remover = Remover::kNone; }, "remover fifo, not none"},
      {[](TableSpec& s) { s.remover = Remover::kUniform; },
       "remover fifo, not uniform with seed 0"},
      {[](TableSpec& s) { s.priority_tables[0].epoch = {.passes = 3, .remove_covered = true}; },
       "epoch of 1 passes, not of 3 passes, covered trajectories removed"},
      {[](TableSpec& s) { s.priority_tables[0].alpha = 0.5; },
       "'per' is stored with alpha 1, not 0.5"},
      {[](TableSpec& s) { s.priority_tables[0].window.stride = 2; },
       "window stride 1, left repeat, right clip, not stride 2, left repeat, right clip"},
      {[](TableSpec& s) { s.priority_tables[0].window.right = EdgeRule::kRequire; },
       "not stride 1, left repeat, right require"},
      {[](TableSpec& s) { s.priority_tables[0].window.extent.after = 7; },
       "extent {1, 2, 1}, not {1, 2, 7}"},
      {[](TableSpec& s) { s.priority_tables[0].seed = 8; }, "with seed 7, not 8"},
      {[](TableSpec& s) { s.priority_tables[0].item = ItemKind::kTrajectory; },
       "item window, not trajectory"},
      {[](TableSpec& s) { s.priority_tables[0].selector = SelectorKind::kUniform; },
       "selector prioritized, not uniform"},
      {[](TableSpec& s) { s.priority_tables[0].selector = SelectorKind::kWithoutReplacement; },
       "selector prioritized, not without_replacement"},
      {[](TableSpec& s) { s.priority_tables[0].selector = SelectorKind::kMaxHeap; },
       "selector prioritized, not max_heap"},
      {[](TableSpec& s) {
         s.priority_tables[0].initial = InitialPriority::kConstant;
         s.priority_tables[0].initial_priority_value = 0.1f;
       },
       "initial priority max (value 1, column ''), not constant (value 0.1, column '')"},
      {[](TableSpec& s) { s.priority_tables[0].name = "other"; }, "'other'"},
  };
  for (const Case& one : cases) {
    EXPECT_STATUS(kFailedPrecondition, CheckSameSpec(FullSpec(), With(one.change)), one.named);
  }
}

TEST(SchemaTest, ColumnGroupsAreChecked) {
  const auto grouped = [](auto change) {
    return ValidateTableSpec(With([&](TableSpec& s) {
      s.groups = {{.name = "late", .late = true}, {.name = "wide"}};
      s.columns[1].group = "wide";
      s.columns[2].group = "late";
      change(s);
    }));
  };
  EXPECT_OK(grouped([](TableSpec&) {}));
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) { s.groups[0].name = ""; }),
                "column group name");
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) { s.groups[1].name = "late"; }),
                "two column groups named 'late'");
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) { s.columns[1].group = ""; }),
                "no column is in group 'wide'");
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) { s.columns[0].group = "wider"; }),
                "'obs' names group 'wider'");
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) { s.columns[3].group = "wide"; }),
                "only per-step columns");
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) { s.columns[2].in_final_row = true; }),
                "group 'late' is late");
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) { s.columns[0].group = "wide"; }),
                "no per-step column in its first column group");
  EXPECT_STATUS(kInvalidArgument, grouped([](auto& s) {
                  for (int i = 0; i < 31; ++i) {
                    s.groups.push_back({.name = "g" + std::to_string(i)});
                  }
                }),
                "at most 31");
}

TEST(SchemaTest, DefaultsAreValuesOfTheirColumn) {
  const auto with = [](DType dtype, double value) {
    return ValidateTableSpec(With([&](TableSpec& s) {
      s.columns[1].dtype = dtype;
      s.columns[1].default_value = value;
    }));
  };
  const double nan = std::nan("");
  EXPECT_OK(with(DType::kF16, nan));
  EXPECT_OK(with(DType::kF32, -std::numeric_limits<double>::infinity()));
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kF16, DType::kBf16, DType::kF32, DType::kF64}) {
    for (const double value : {nan, infinity, -infinity}) EXPECT_OK(with(dtype, value));
  }
  // The largest finite number; half a last place beyond it is rounded to infinity.
  const std::tuple<DType, double, double> ends[] = {
      {DType::kF16, 65504, 65520},
      {DType::kBf16, std::ldexp(255, 120), std::ldexp(511, 119)},
      {DType::kF32, std::numeric_limits<float>::max(), std::ldexp((1 << 25) - 1, 103)}};
  for (const auto& [dtype, largest, beyond] : ends) {
    const std::string text = "which is no " + std::string(DTypeName(dtype));
    for (const double sign : {1.0, -1.0}) {
      EXPECT_OK(with(dtype, sign * largest));
      EXPECT_OK(with(dtype, sign * (largest + beyond) / 2));
      EXPECT_STATUS(kInvalidArgument, with(dtype, sign * beyond), text);
      EXPECT_STATUS(kInvalidArgument, with(dtype, sign * 1e300), text);
    }
  }
  EXPECT_OK(with(DType::kF64, 1e300));
  EXPECT_OK(with(DType::kU8, 255));
  EXPECT_OK(with(DType::kI8, -128));
  EXPECT_OK(with(DType::kI64, -std::ldexp(1.0, 63)));
  EXPECT_OK(with(DType::kU64, std::ldexp(1.0, 64) - 2048));
  EXPECT_OK(with(DType::kBool, 1));
  EXPECT_STATUS(kInvalidArgument, with(DType::kU8, 256), "default 256, which is no u8");
  EXPECT_STATUS(kInvalidArgument, with(DType::kU8, -1), "no u8");
  EXPECT_STATUS(kInvalidArgument, with(DType::kI8, 128), "no i8");
  EXPECT_STATUS(kInvalidArgument, with(DType::kI32, 0.5), "no i32");
  EXPECT_STATUS(kInvalidArgument, with(DType::kI32, nan), "no i32");
  EXPECT_STATUS(kInvalidArgument, with(DType::kU64, std::ldexp(1.0, 64)), "no u64");
  EXPECT_STATUS(kInvalidArgument, with(DType::kI64, std::ldexp(1.0, 63)), "no i64");
  EXPECT_STATUS(kInvalidArgument, with(DType::kBool, 2), "no bool");
  const auto priority_from = [](double value) {
    return ValidateTableSpec(With([&](TableSpec& s) {
      s.columns[4].default_value = value;
      s.priority_tables[0].initial = InitialPriority::kColumn;
      s.priority_tables[0].initial_priority_column = "score";
    }));
  };
  EXPECT_OK(priority_from(2));
  EXPECT_STATUS(kInvalidArgument, priority_from(-1), "whose default is -1");
  EXPECT_STATUS(kInvalidArgument, priority_from(nan), "'score'");
}

TEST(SchemaTest, ADifferenceOfGroupsIsNamed) {
  const auto grouped = [](auto change) {
    return With([&](TableSpec& s) {
      s.groups = {{.name = "late", .late = true}};
      s.columns[2].group = "late";
      s.columns[2].default_value = std::nan("");
      change(s);
    });
  };
  const TableSpec stored = grouped([](TableSpec&) {});
  EXPECT_OK(CheckSameSpec(stored, grouped([](TableSpec&) {})));
  const auto check = [&](auto change) { return CheckSameSpec(stored, grouped(change)); };
  EXPECT_STATUS(kFailedPrecondition, check([](auto& s) { s.groups[0].late = false; }),
                "column group 'late' as late, not appended");
  EXPECT_STATUS(kFailedPrecondition, check([](auto& s) { s.groups[0].is_volatile = true; }),
                "late, not late, volatile");
  EXPECT_STATUS(kFailedPrecondition, check([](auto& s) { s.columns[2].default_value = 1; }),
                "default nan");
  EXPECT_STATUS(kFailedPrecondition, check([](auto& s) { s.columns[1].group = "late"; }),
                "in group 'late'");
  EXPECT_STATUS(kFailedPrecondition, check([](auto& s) { s.groups.push_back({.name = "x"}); }),
                "column groups: 2, not 3");
}

TEST(SchemaTest, PageSizeFollowsRowBytesAndExpectedLength) {
  const auto chosen = [](int64_t floats, uint64_t expected) {
    TableSpec spec;
    spec.columns = {{.name = "x", .shape = {floats}}};
    spec.expected_steps = expected;
    return ChooseStepsPerPage(spec);
  };
  EXPECT_EQ(chosen(1, 1), 1u);  // Single transitions.
  EXPECT_EQ(chosen(1, 4), 1u);
  EXPECT_EQ(chosen(1, 5), 2u);
  EXPECT_EQ(chosen(1, 16), 4u);
  EXPECT_EQ(chosen(1, 17), 8u);
  EXPECT_EQ(chosen(1, 1'000'000), 256u);
  EXPECT_EQ(chosen(64, 1'000'000), 256u);   // 256 bytes: 64 KiB.
  EXPECT_EQ(chosen(65, 1'000'000), 128u);   // A little more: the page stays below.
  EXPECT_EQ(chosen(16384, 1'000'000), 1u);  // 64 KiB a row.
  EXPECT_EQ(chosen(1 << 20, 1'000'000), 1u);
  EXPECT_EQ(chosen(1, UINT64_MAX), 256u);
  TableSpec grouped;
  grouped.columns = {{.name = "x", .shape = {16384}}, {.name = "y", .group = "apart"}};
  grouped.groups = {{.name = "apart"}};
  EXPECT_EQ(ChooseStepsPerPage(grouped), 1u);  // As the widest group wants it.
  std::swap(grouped.columns[0].shape, grouped.columns[1].shape);
  EXPECT_EQ(ChooseStepsPerPage(grouped), 1u);
}

TEST(SchemaTest, GivenPageSizeIsKept) {
  EXPECT_EQ(ChooseStepsPerPage(With([](auto& s) { s.steps_per_page = 2; })), 2u);
}

}  // namespace
}  // namespace geardb
