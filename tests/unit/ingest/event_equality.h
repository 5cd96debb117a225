// Equality of whole events, member by member. A member that is added later does not compile here
// until it is compared too: then the round trip asks the codec for it.
#pragma once

#include <tuple>

#include "core/command.h"
#include "core/issue.h"
#include "core/notification.h"

namespace tocsin::core {

inline auto members(const RunRef& v) {
  const auto& [a, b, c, d, e] = v;
  return std::tuple(a, b, c, d, e);
}
inline auto members(const NamedNumber& v) {
  const auto& [a, b] = v;
  return std::tuple(a, b);
}
inline auto members(const TensorRef& v) {
  const auto& [a, b, c, d] = v;
  return std::tuple(a, b, c, d);
}
inline auto members(const WindowRef& v) {
  const auto& [a, b, c, d, e, f, g, h] = v;
  return std::tuple(a, b, c, d, e, f, g, h);
}
inline auto members(const Parameter& v) {
  const auto& [a, b, c] = v;
  return std::tuple(a, b, c);
}
inline auto members(const Affected& v) {
  const auto& [a, b, c] = v;
  return std::tuple(a, b, c);
}
inline auto members(const DataRef& v) {
  const auto& [a, b, c, d] = v;
  return std::tuple(a, b, c, d);
}
inline auto members(const Evidence& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k);
}
inline auto members(const Cause& v) {
  const auto& [a, b, c, d, e, f, g] = v;
  return std::tuple(a, b, c, d, e, f, g);
}
inline auto members(const Issue& v) {
  const auto& [event_id, source, sequence, time, status, rule, rule_type, rule_version, params_hash,
               kind, shadow, severity, labels, summary, description, recommendation, runbook_url,
               annotations, generator_url, traceparent, tracestate, starts_at, ends_at,
               explicit_expiry, resolution, ending, run, step, global_step, mode, epoch, evidence,
               caused_by, measured_at, published_at, evaluated_at] = v;
  return std::tuple(
      event_id, source, sequence, time, status, rule, rule_type, rule_version, params_hash, kind,
      shadow, severity, labels, summary, description, recommendation, runbook_url, annotations,
      generator_url, traceparent, tracestate, starts_at, ends_at, explicit_expiry, resolution, run,
      step, global_step, mode, epoch, evidence, caused_by, measured_at, published_at, evaluated_at);
}
inline auto members(const JobEvent& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
}
inline auto members(const RuleStatusEvent& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k);
}
inline auto members(const CommandReason& v) {
  const auto& [a, b, c, d, e] = v;
  return std::tuple(a, b, c, d, e);
}
inline auto members(const Command& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k, l, m);
}
inline auto members(const Ack& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
}
inline auto members(const AckTold& v) {
  const auto& [a, b, c, d] = v;
  return std::tuple(a, b, c, d);
}
inline auto members(const NotifiedIssue& v) {
  const auto& [a, b, c, d] = v;
  return std::tuple(a, b, c, d);
}
inline auto members(const StopTold& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k, l);
}
inline auto members(const RunTold& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k);
}
inline auto members(const Notification& v) {
  const auto& [a, b, c, d, e, f, g, h, i, why, j, k, l, m, n, z, runs, o, p, q, r, s, t, u, w, x,
               y] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, why, j, k, l, m, n, z, runs, o, p, q, r, s, t, u, w,
                    x, y);
}
inline auto members(const IssueRef& v) {
  const auto& [a, b, c] = v;
  return std::tuple(a, b, c);
}
inline auto members(const Delivery::Stages& v) {
  const auto& [a, b, c, d, e, f] = v;
  return std::tuple(a, b, c, d, e, f);
}
inline auto members(const Delivery& v) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = v;
  return std::tuple(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
}

template <typename Event>
requires requires(const Event& event) { members(event); }
bool operator==(const Event& left, const Event& right) { return members(left) == members(right); }

}  // namespace tocsin::core
