// What of a tensor is kept to be compared with another run's, and what is said where they differ.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "core/frame.h"
#include "core/identity.h"
#include "rules/builtin/data/likeness.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {

/// `name`: null where no dictionary has named it yet.
inline SavedRow saved(const core::SummaryRow& row, bool scalar, const Name* name) {
  SavedRow one;
  one.name = row.name;
  one.count = row.count;
  one.nan = row.nan;
  one.posinf = row.posinf;
  one.neginf = row.neginf;
  one.scalar = scalar ? 1 : 0;
  one.dtype = static_cast<std::uint8_t>(core::meta::dtype(row.meta));
  if (row.count == 0) return one;
  one.min = row.min;
  one.max = row.max;
  one.mean = row.mean();
  one.std = std::sqrt(row.m2 / static_cast<double>(row.count));
  one.l2 = std::sqrt(row.sumsq);
  if (name != nullptr && !name->shape.empty()) {
    one.shape = core::name_hash({reinterpret_cast<const char*>(name->shape.data()),
                                 name->shape.size() * sizeof(std::int64_t)});
  }
  return one;
}

/// What was measured of the rows besides: `kept` are those of `rows`, in their order.
inline void attach(std::span<SavedRow> kept, const WorkerRows& rows) {
  constexpr double kMostElements = 9007199254740992.0;  // 2^53: what a number can count
  rows.frame->sparse_columns([&](const core::SparseColumn& column) {
    const bool digest = column.stat == core::SparseStat::digest;
    if (!digest && column.stat != core::SparseStat::first_bad_index) return;
    for (std::size_t i = 0; i < column.size(); ++i) {
      const auto at = std::lower_bound(rows.rows.begin(), rows.rows.end(), column.row(i));
      if (at == rows.rows.end() || *at != column.row(i)) continue;
      SavedRow& row = kept[static_cast<std::size_t>(at - rows.rows.begin())];
      if (digest) {
        row.digest = std::bit_cast<std::uint64_t>(column.value(i));
        row.has_digest = 1;
      } else if (column.value(i) >= 0 && column.value(i) < kMostElements) {
        row.first_bad = static_cast<std::uint64_t>(column.value(i));
      }
    }
  });
}

/// They differ at a step of both.
inline Finding tell_different(const SimilarConfig& config, const Likeness& likeness,
                              const Subject& subject) {
  const double off = std::fabs(likeness.here - likeness.there);
  const bool approximate = likeness.by == "mean" || likeness.by == "std" || likeness.by == "l2";
  Finding out =
      Finding::that("difference", off)
          .is(">", "tolerance", config.atol + config.rtol * std::fabs(likeness.there))
          .titled(subject.name, Verb::is, "different from the other run")
          .says(sentence("{} is different from run {} at {}: its {} is {} here and {} there.",
                         subject.name, core::to_text(config.other), subject.place(), likeness.by,
                         likeness.here, likeness.there))
          .advises(
              "Compare how both runs began: seeds, data and their order, versions, precision, "
              "number of workers. The first tensor that differs shows where they part.")
          .with("other_run", core::to_text(config.other))
          .with("compared_by", std::string(likeness.by))
          .with("here", likeness.here)
          .with("there", likeness.there)
          .with("relative", off / std::fabs(likeness.there))
          .with("approximate", approximate);
  if (likeness.first_index != kNoIndex) out.with("first_index", likeness.first_index);
  return out;
}

/// One of the runs alone has it, as `likeness.by` says: "here" or "there".
inline Finding tell_missing(const SimilarConfig& config, const Likeness& likeness,
                            const Subject& subject) {
  const bool here = likeness.by == "here";
  const std::string other = core::to_text(config.other);
  return Finding::that("missing", 1)
      .titled(subject.name, Verb::is, here ? "in this run only" : "missing in this run")
      .says(here ? sentence("{} is in this run and not in run {} at {}.", subject.name, other,
                            subject.place())
                 : sentence("{} is in run {} and not in this one at {}.", subject.name, other,
                            subject.place()))
      .advises("Give both runs the same capture settings, or compare only what both have.")
      .with("other_run", core::to_text(config.other))
      .with("only_in", here ? "this run" : "the other run");
}

}  // namespace tocsin::rules
