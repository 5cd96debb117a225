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
      .says(sentence(
          "The targets of {} are its inputs: of {} places up to {}, {} hold the same number in "
          "both, and {} would by chance.",
          call, places, subject.place(), same, by_chance))
      .advises(
          "Shift the targets by one place (a language model predicts the next token), or hide "
          "what is to be predicted.")
      .with("places", places)
      .with("by_chance", by_chance);
}

inline Finding solved(const std::string& call, double skill, double samples, double updates,
                      double planned, bool training, double limit, const Subject& subject) {
  Finding out = Finding::that("skill", skill);
  out.is(">", "limit", limit)
      .titled("the task", Verb::is, "solved at once")
      .says(
          sentence("After {} of {} planned updates {} is {} % better than a constant answer on {} "
                   "{} ({}).",
                   updates, planned, call, 100 * skill, samples,
                   training ? "training samples, none of which it had seen" : "evaluation samples",
                   subject.place()))
      .advises(
          "Look for the target among the inputs (a column, a mask that hides nothing, a window "
          "that "
          "reaches too far) and for training samples in the evaluation set. If neither is there, "
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
  const std::string next =
      columns.size() < 2 ? std::string("no other explains any")
                         : sentence("the next, {}, {} %", columns[1].name, 100 * columns[1].fit);
  Finding out = copied ? Finding::that("equal_share", one.equal) : Finding::that("fit", one.fit);
  out.is(copied ? ">=" : ">", "limit", limit);
  if (copied) {
    out.titled(inputs ? "input column " + one.name : one.name, Verb::is, "the target itself")
        .says(sentence("{} {} is the label, bit for bit, in {} % of what chance leaves of {} "
                       "training rows.",
                       kind, one.name, 100 * one.equal, rows));
  } else {
    out.titled(inputs ? "input column " + one.name : one.name, Verb::does_not,
               "leave anything to learn")
        .says(sentence("{} {} alone explains {} % of {} of {} training rows ({}; with the "
                       "labels shifted by a row {} %).",
                       kind, one.name, 100 * one.fit,
                       several ? "the difference between the classes" : "the labels' variance",
                       rows, next, 100 * one.shifted));
  }
  out.advises(
         "Ask whether this column is known when the model is to predict. If it is made from the "
         "label or after it, leave it out.")
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
      .says(sentence("{} of {} rows of {} ({} %) are also among {} training rows, label and all.",
                     seen, rows, name, 100 * seen / rows, train))
      .advises(
          data.has("early") && seen >= 0.99 * rows
              ? "Take the evaluation set out of the training data. If this is meant as a score "
                "of the training data, evaluate held-out data as well."
              : "Remove duplicates before the data are split, or split by what the rows belong "
                "to.")
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
      .says(sentence("Column {} has {} % of what all splits gain up to {}, the next has {} %.",
                     column, 100 * share, subject.place(), 100 * next))
      .advises(
          "Ask whether this column is known when the model is to predict; train once without "
          "it and compare.")
      .with("next", next);
  out.severity = core::Severity::info;
  return out;
}

}  // namespace tocsin::rules
