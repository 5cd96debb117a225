// An issue: as an event's data, in the router's state, in the outbox and in bodies.
#pragma once

#include "core/fields/archive.h"
#include "core/fields/evidence.h"
#include "core/fields/run.h"
#include "core/fields/words.h"
#include "core/issue.h"

namespace tocsin::core {

/// What the label says: a word outside the set counts as error, none as a warning.
inline Severity severity_of(const Labels& labels) {
  if (!labels.has("severity")) return Severity::warning;
  return severity_from(labels.get("severity")).value_or(Severity::error);
}

/// Who ends an issue, as its event names it.
enum class Expiry { timeout, by_producer };
inline std::string_view to_string(Expiry expiry) noexcept {
  return expiry == Expiry::timeout ? "timeout" : "explicit";
}
template <>
struct Words<Expiry> {
  static constexpr Expiry kAll[] = {Expiry::by_producer, Expiry::timeout};
};

/// What the producer left out follows from its labels, which are never changed for it.
template <typename A>
void read_from_labels(A& io, Issue& issue) {
  const Labels& labels = issue.labels;
  if (!io.has("rule")) issue.rule = labels.get("rule");
  if (!io.has("rule_type")) issue.rule_type = issue.rule;
  if (!io.has("kind")) issue.kind = labels.get("kind");
  std::string severity;
  io.field("severity", severity);
  issue.severity = severity_from(severity).value_or(severity_of(labels));
  issue.run.attempt = 0;
  issue.run.job = labels.get("job");
}

template <typename A>
void fields(A& io, Of<A, Ending>& ending) {
  io.field("summary", ending.summary, "how it ended, in one sentence");
  io.field("event_id", ending.event_id, "id of the event that resolved it",
           A::kMessage ? How::plain : How::omit_if_empty);
  io.field("step", ending.step, "step of its mode at the end");
  io.field("global_step", ending.global_step, "step over all modes at the end");
}

template <typename A>
void annotation_fields(A& io, Of<A, Issue>& issue) {
  constexpr How kOptional = How::omit_if_empty;
  io.field("summary", AnyText{issue.summary}, "one sentence", A::kMessage ? kOptional : How::plain);
  io.field("description", AnyText{issue.description}, "more of it", kOptional);
  io.field("recommendation", AnyText{issue.recommendation}, "what to do", kOptional);
  io.field("runbook_url", AnyText{issue.runbook_url}, "where that is described", kOptional);
  io.rest(issue.annotations, {"summary", "description", "recommendation", "runbook_url"});
}

/// Labels are identity and address: what is only a field is never added to them.
template <typename A>
void fields(A& io, Of<A, Issue>& issue) {
  io.field("status", issue.status, "firing or resolved", How::required);
  io.field("rule", issue.rule, "name of the rule; default: the label `rule`");
  io.field("rule_type", issue.rule_type, "the rule's type; default: its name", How::record);
  io.field("rule_version", issue.rule_version, "version of that type", How::record);
  io.field("params_hash", issue.params_hash, "hash of its effective parameters", How::record);
  // Empty though there is such a label: said, or the label would be read in its place.
  io.field("kind", issue.kind, "which of the rule's findings; default: the label `kind`",
           How::record | (issue.labels.has("kind") ? How::plain : How::null_if_empty));
  io.field("shadow", issue.shadow, "only watched: nobody is told", How::record);
  if constexpr (!A::kReading) {
    if (!A::kWriting || A::kMessage || severity_of(issue.labels) != issue.severity) {
      io.field("severity", issue.severity, "where the label `severity` does not say it");
    }
  }
  io.field("labels", issue.labels, "name to value: what it is about and who is told; at least one",
           How::plain);
  if constexpr (A::kReading) read_from_labels(io, issue);
  io.object("annotations", "texts for people; further names are kept",
            [&](auto& in) { annotation_fields(in, issue); });
  io.field("generator_url", issue.generator_url, "page of the producer about it",
           A::kMessage ? How::plain : How::omit_if_empty);
  io.field("starts_at", issue.starts_at, "since when");
  io.field("ends_at", issue.ends_at, "until when");
  if constexpr (!A::kMessage) {
    auto expiry = issue.explicit_expiry && !A::kReading ? Expiry::by_producer : Expiry::timeout;
    io.field("expiry", expiry, "explicit: its producer resolves it; timeout: it ends by itself");
    if constexpr (A::kReading) issue.explicit_expiry = expiry == Expiry::by_producer;
  }
  io.field("resolution", issue.resolution, "why it is over");
  io.field("ending", issue.ending, "how it ended; the other fields say what was found",
           A::kMessage ? How::plain : How::omit_if_empty);
  io.field("run", issue.run, "the run it is about");
  io.field("step", issue.step, "step of its mode");
  io.field("global_step", issue.global_step, "step over all modes");
  io.field("mode", issue.mode, "global, train, eval or predict");
  io.field("epoch", issue.epoch, "training epoch");
  io.field("evidence", issue.evidence, "what the rule saw");
  io.field("caused_by", issue.caused_by,
           "what began before it in its run and still fired, earliest first; none: a first sign",
           How::omit_if_empty);
  if constexpr (!A::kMessage) {
    io.object("stages", "times between a number in the training process and this event",
              [&](auto& in) {
                in.field("measured_at", issue.measured_at, "in the training process");
                in.field("published_at", issue.published_at, "its record was appended");
                in.field("evaluated_at", issue.evaluated_at, "the rule judged it");
              });
  }
}

}  // namespace tocsin::core
