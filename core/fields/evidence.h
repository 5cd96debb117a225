// What a rule saw.
#pragma once

#include "core/fields/archive.h"
#include "core/fields/words.h"
#include "core/issue.h"

namespace tocsin::core {

template <typename A>
void fields(A& io, Of<A, NamedNumber>& number) {
  io.field("name", number.name, "which number");
  io.field("value", number.value, "its value");
}

template <typename A>
void fields(A& io, Of<A, TensorRef>& tensor) {
  io.field("name", tensor.name, "the framework's name of it");
  io.field("collection", tensor.collection, "gradients, weights, …", How::null_if_empty);
  io.field("dtype", tensor.dtype, "type of its elements");
  io.field("shape", tensor.shape, "elements per dimension");
}

template <typename A>
void fields(A& io, Of<A, WindowRef>& window) {
  io.field("clock", window.clock, "step or time");
  io.field("first", window.first, "first step, or UTC nanoseconds");
  io.field("last", window.last, "last step, or UTC nanoseconds");
  io.field("first_time", window.first_time, "when the first point was measured", How::record);
  io.field("last_time", window.last_time, "when the last point was measured", How::record);
  io.field("points", window.points, "points judged");
  io.field("partial", window.partial, "some of the window's records are missing");
  io.field("missing_ranks", window.missing_ranks, "ranks that had not reported", How::record);
}

template <typename A>
void fields(A& io, Of<A, Parameter>& parameter) {
  io.field("value", parameter.value, "its effective value");
  io.field("origin", parameter.origin, "default or user");
}

template <typename A>
void fields(A& io, Of<A, Affected>& affected) {
  io.field("hit", affected.hit, "units that met the condition");
  io.field("evaluated", affected.evaluated, "units judged");
  io.list("worst", affected.worst, "the worst of them, at most ten", [](auto& in, auto& unit) {
    in.field("unit", unit.first, "labels of the unit");
    in.field("value", unit.second, "its observed value");
  });
}

template <typename A>
void fields(A& io, Of<A, DataRef>& ref) {
  io.field("topic", ref.topic, "full name of the topic");
  io.field("partition", ref.partition, "its partition");
  io.field("first", ref.first, "first offset");
  io.field("last", ref.last, "last offset");
}

template <typename A>
void fields(A& io, Of<A, Evidence>& evidence) {
  io.field("observed", evidence.observed, "what was compared");
  io.field("operator", evidence.op, "how, such as >=");
  io.field("threshold", evidence.threshold, "with what");
  io.field("tensor", evidence.tensor, "the tensor it is about", How::omit_if_empty);
  io.field("window", evidence.window, "the span that was judged");
  if constexpr (!A::kMessage) {
    io.named("parameters", evidence.parameters, "the rule's parameters", &Parameter::name,
             &Parameter::value);
  }
  io.field("first_seen", evidence.first_seen, "when it was first so", How::record);
  io.field("occurrences", evidence.occurrences, "hits since then");
  io.field("affected", evidence.affected, "how many units, and which");
  io.field("data_refs", evidence.data_refs, "the records that led here", How::record);
  io.field("values", evidence.values, "the rule's own further numbers");
}

template <typename A>
void fields(A& io, Of<A, Cause>& cause) {
  io.field("event_id", cause.event_id, "id of its first report");
  io.field("issue_key", cause.issue_key, "its key");
  io.field("rule", cause.rule, "name of its rule");
  io.field("unit", cause.unit, "what it is about: labels that the rule added");
  io.field("mode", cause.mode, "mode in which it began");
  io.field("step", cause.step, "step of that mode");
  io.field("global_step", cause.global_step, "step over all modes");
}

}  // namespace tocsin::core
