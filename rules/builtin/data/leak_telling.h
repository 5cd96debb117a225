// What the rule leak says of what it found.
#pragma once

#include <string>
#include <vector>

#include "rules/builtin/data/leak_columns.h"
#include "rules/builtin/data/ledger_sets.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

inline Finding same_places(const std::string& call, double places, double same, double by_chance,
                           double limit, const Subject& subject) {
  return Finding::that("same_share", same / places)
      .is(">=", "limit", limit)
      .titled("the target", Verb::is, "the input itself")
      .says(sentence("The targets of {0} equal its inputs: {3} of {1} positions hold the same "
                     "number ({2}); by chance {4} would.",
                     call, places, subject.place(), same, by_chance))
      .advises(
          "Shift the targets by one position (a language model predicts the next token), or mask "
          "the values to be predicted.")
      .with("places", places)
      .with("by_chance", by_chance);
}

inline Finding solved(const std::string& call, double skill, double samples, double updates,
                      double planned, bool training, double limit, const Subject& subject) {
  Finding out = Finding::that("skill", skill);
  out.is(">", "limit", limit)
      .titled("the task", Verb::is, "solved at once")
      .says(
          sentence("After {} of {} planned updates, {} is {} % better than one constant answer on "
                   "{} {} ({}).",
                   updates, planned, call, 100 * skill, samples,
                   training ? "training samples that it had not seen before" : "evaluation samples",
                   subject.place()))
      .advises(
          "Most probable first: the target is among the inputs (a column, a mask that hides "
          "nothing, a window that reaches too far); training samples are in the evaluation set; "
          "the task is trivial.")
      .with("samples", samples);
  out.severity = core::Severity::info;
  return out;
}

/// `inputs`: columns of a model's inputs, which have numbers and no names.
inline Finding known_column(const std::vector<KnownColumn>& columns, double rows, bool several,
                            bool inputs, double limit) {
  const KnownColumn& one = columns[0];
  const bool copied = one.rank == 3;
  const std::string_view kind = inputs ? "Input column" : "Column";
  const std::string next = columns.size() < 2 ? std::string("no other column explains any")
                                              : sentence("the next best, {}, explains {} %",
                                                         columns[1].name, 100 * columns[1].fit);
  Finding out = copied ? Finding::that("equal_share", one.equal) : Finding::that("fit", one.fit);
  out.is(copied ? ">=" : ">", "limit", limit);
  if (copied) {
    out.titled(inputs ? "input column " + one.name : one.name, Verb::is, "the target itself")
        .says(sentence("{} {} equals the label, bit for bit, in {} % of {} training rows, after "
                       "correction for chance.",
                       kind, one.name, 100 * one.equal, rows));
  } else {
    out.titled(inputs ? "input column " + one.name : one.name, Verb::does_not,
               "leave anything else to learn")
        .says(
            sentence("{} {} alone explains {} % of {} in {} training rows ({}; with labels shifted "
                     "by one row: {} %).",
                     kind, one.name, 100 * one.fit,
                     several ? "the difference between the classes" : "the variance of the labels",
                     rows, next, 100 * one.shifted));
  }
  out.advises(
         "Ask whether this column is known at prediction time. If it is made from the label or "
         "after it, remove it.")
      .with("column", one.name)
      .with("fit", one.fit)
      .with("shifted_fit", one.shifted)
      .with("rows", rows);
  out.severity = one.rank >= 2 ? core::Severity::warning : core::Severity::info;
  return out;
}

inline Finding rows_among_training(const std::string& name, const LedgerSet& data, double limit,
                                   bool many) {
  const double rows = data.field("compared");
  const double seen = data.field("seen");
  const double train = data.field("train_distinct", data.field("train_compared"));
  Finding out = Finding::that("overlap", seen / rows);
  out.is(">", "limit", limit)
      .titled(name, Verb::has, "rows of the training set")
      .says(sentence(
          "{} of {} rows of {} ({} %) also occur among {} training rows, with the same label.",
          seen, rows, name, 100 * seen / rows, train))
      .advises(data.has("early") && seen >= 0.99 * rows
                   ? "Remove the evaluation rows from the training data. If this set is meant to "
                     "score the training data, evaluate held-out data as well."
                   : "Remove duplicates before you split the data, or split by what the rows "
                     "belong to (user, patient, document).")
      .with("rows", rows)
      .with("train_rows", train)
      .with("train_repeats", data.field("train_repeats"));
  out.severity = many ? core::Severity::error : core::Severity::warning;
  return out;
}

inline Finding one_gain(const std::string& column, double share, double next, double limit,
                        const Subject& subject) {
  Finding out = Finding::that("share", share);
  out.is(">", "limit", limit)
      .titled(column, Verb::has, "nearly all of the gain")
      .says(sentence(
          "Column {0} has {1} % of the gain of all splits up to {2}; the next column has {3} %.",
          column, 100 * share, subject.place(), 100 * next))
      .advises(
          "Ask whether this column is known at prediction time. Train once without it and compare.")
      .with("next", next);
  out.severity = core::Severity::info;
  return out;
}

}  // namespace tocsin::rules
