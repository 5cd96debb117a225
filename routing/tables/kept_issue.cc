#include "routing/tables/kept_issue.h"

#include <type_traits>
#include <variant>

#include "routing/tables/packed_bytes.h"

namespace tocsin::routing {

// ---- values of any kind

namespace {

template <std::size_t I = 0>
void pack_kind(BytesIn& io, std::size_t kind, core::Value::Storage& out) {
  if constexpr (I < std::variant_size_v<core::Value::Storage>) {
    if (kind != I) return pack_kind<I + 1>(io, kind, out);
    auto& held = out.emplace<I>();
    if constexpr (!std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) pack(io, held);
  }
}

}  // namespace

void pack(BytesOut& io, const core::Value& value) {
  io.number(value.storage().index());
  std::visit(
      [&](const auto& held) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) pack(io, held);
      },
      value.storage());
}

void pack(BytesIn& io, core::Value& value) {
  core::Value::Storage held;
  io.nested([&] { pack_kind(io, io.number(), held); });
  std::visit(
      [&](auto& one) {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::monostate>) {
          value = core::Value();
        } else {
          value = core::Value(std::move(one));
        }
      },
      held);
}

// ---- the members, in one order for both ways

namespace {

/// T const where bytes are written.
template <typename IO, typename T>
using Packed = std::conditional_t<IO::kReading, T, const T>;

template <typename IO, typename... Members>
void pack_each(IO& io, Members&... members) {
  (pack(io, members), ...);
}

}  // namespace

template <typename IO>
void pack(IO& io, Packed<IO, core::NamedNumber>& number) {
  pack_each(io, number.name, number.value);
}
template <typename IO>
void pack(IO& io, Packed<IO, core::TensorRef>& tensor) {
  pack_each(io, tensor.name, tensor.collection, tensor.dtype, tensor.shape);
}
template <typename IO>
void pack(IO& io, Packed<IO, core::WindowRef>& window) {
  pack_each(io, window.clock, window.first, window.last, window.first_time, window.last_time,
            window.points, window.partial, window.missing_ranks);
}
template <typename IO>
void pack(IO& io, Packed<IO, core::Parameter>& parameter) {
  pack_each(io, parameter.name, parameter.value, parameter.origin);
}
template <typename IO>
void pack(IO& io, Packed<IO, core::DataRef>& ref) {
  pack_each(io, ref.topic, ref.partition, ref.first, ref.last);
}
template <typename IO>
void pack(IO& io, Packed<IO, core::Evidence>& evidence) {
  pack_each(io, evidence.observed, evidence.op, evidence.threshold, evidence.tensor,
            evidence.window, evidence.parameters, evidence.first_seen, evidence.occurrences,
            evidence.affected.hit, evidence.affected.evaluated, evidence.affected.worst,
            evidence.data_refs, evidence.values);
}
template <typename IO>
void pack(IO& io, Packed<IO, core::Cause>& cause) {
  pack_each(io, cause.event_id, cause.issue_key, cause.rule, cause.unit, cause.mode, cause.step,
            cause.global_step);
}
template <typename IO>
void pack(IO& io, Packed<IO, core::Ending>& ending) {
  pack_each(io, ending.summary, ending.event_id, ending.step, ending.global_step);
}

namespace {

/// Of the run, what nothing is decided by.
template <typename IO>
void pack_words(IO& io, Packed<IO, core::RunRef>& run) {
  pack_each(io, run.job, run.platform, run.ref);
}

/// Behind the run's words and the rule.
template <typename IO>
void pack_rest(IO& io, Packed<IO, core::Issue>& issue) {
  pack_each(io, issue.event_id, issue.source, issue.sequence, issue.time, issue.rule_type,
            issue.rule_version, issue.params_hash, issue.kind, issue.summary, issue.description,
            issue.recommendation, issue.runbook_url, issue.annotations, issue.generator_url,
            issue.traceparent, issue.tracestate, issue.ending, issue.step, issue.global_step,
            issue.mode, issue.epoch, issue.evidence, issue.measured_at, issue.published_at,
            issue.evaluated_at);
}

std::string words_of(const core::RunRef& run) {
  std::string out;
  BytesOut io(out);
  pack_words(io, run);
  return out;
}

}  // namespace

KeptIssue::KeptIssue(const core::Issue& issue)
    : labels(issue.labels),
      caused_by(issue.caused_by),
      starts_at(issue.starts_at),
      ends_at(issue.ends_at),
      run{issue.run.uid, issue.run.attempt},
      status(issue.status),
      resolution(issue.resolution),
      severity(issue.severity),
      shadow(issue.shadow),
      explicit_expiry(issue.explicit_expiry) {
  std::string bytes;
  BytesOut io(bytes);
  io.text(words_of(issue.run));
  io.text(issue.rule);
  pack_rest(io, issue);
  bytes_ = std::string(bytes.data(), bytes.size());  // no larger than it must be
}

core::Issue KeptIssue::whole() const {
  core::Issue out;
  if (!bytes_.empty()) {
    BytesIn io(bytes_);
    BytesIn words(io.text());
    pack_words(words, out.run);
    out.rule = io.text();
    pack_rest(io, out);
  }
  out.labels = labels;
  out.caused_by = caused_by;
  out.starts_at = starts_at;
  out.ends_at = ends_at;
  out.run.uid = run.uid;
  out.run.attempt = run.attempt;
  out.status = status;
  out.resolution = resolution;
  out.severity = severity;
  out.shadow = shadow;
  out.explicit_expiry = explicit_expiry;
  return out;
}

template <typename IO, typename Issue>
void KeptIssue::pack_all(IO& io, Issue& issue) {
  pack_each(io, issue.labels, issue.caused_by, issue.starts_at, issue.ends_at, issue.run.uid,
            issue.run.attempt, issue.status, issue.resolution, issue.severity, issue.shadow,
            issue.explicit_expiry, issue.bytes_);
}

void KeptIssue::write(BytesOut& io) const { pack_all(io, *this); }

bool KeptIssue::read(BytesIn& io) {
  pack_all(io, *this);
  return io.good() && status <= core::IssueStatus::resolved &&
         resolution <= core::Resolution::rule_changed && severity <= core::Severity::critical;
}

void KeptIssue::follow(const core::RunRef& of) {
  run = {of.uid, of.attempt};
  if (!bytes_.empty() && BytesIn(bytes_).text() == words_of(of)) return;
  change([&](core::Issue& issue) { issue.run = of; });
}

std::string_view KeptIssue::rule() const noexcept {
  if (bytes_.empty()) return {};
  BytesIn io(bytes_);
  (void)io.text();
  return io.text();
}

}  // namespace tocsin::routing
