// What a producer says of a name: the `attrs` of a dictionary entry.
#pragma once

#include "core/dictionary.h"
#include "core/fields/archive.h"

namespace tocsin::core {

inline std::string_view to_string(Direction direction) noexcept {
  return direction == Direction::min ? "min" : "max";
}

template <>
struct Words<Direction> {
  static constexpr Direction kAll[] = {Direction::min, Direction::max};
};

template <typename A>
void fields(A& io, Of<A, NameAttrs>& attrs) {
  constexpr How kOptional = How::omit_if_empty;
  io.field("job", attrs.job, "name of what is trained", kOptional);
  io.field("labels", attrs.labels, "labels of the run", kOptional);
  io.field("collections", attrs.collections, "collections that the tensor is in", kOptional);
  io.field("op_type", attrs.op_type, "operator that made the tensor", kOptional);
  io.field("axis", attrs.axis, "along which its units lie; negative: from the last one on",
           kOptional);
  io.field("direction", attrs.direction, "which way it should go", kOptional);
  io.field("unit", attrs.unit, "of its values", kOptional);
}

}  // namespace tocsin::core
