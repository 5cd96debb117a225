#include "actions/message/rendered.h"

#include <algorithm>
#include <optional>

#include "core/fields/json_in.h"
#include "core/fields/out.h"

namespace tocsin::actions {
namespace {

/// The first line; `body` stands in it in records of an earlier day.
struct RenderedHead {
  std::string content_type;
  std::optional<std::string> body;
  std::vector<std::pair<std::string, std::string>> fields;
};
template <typename A>
void fields(A& io, core::Of<A, RenderedHead>& head) {
  io.field("content_type", head.content_type, "", core::How::required);
  io.field("body", head.body, "", core::How::omit_if_empty);
  io.field("fields", head.fields);
}

}  // namespace

std::string Rendered::field(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

std::string stored(const Rendered& rendered) {
  std::string out =
      core::write_json(RenderedHead{rendered.content_type, std::nullopt, rendered.fields});
  out += '\n';
  return out += rendered.body;
}

core::Result<Rendered> parse_rendered(std::string_view stored) {
  if (stored.size() > kMaxRendered) {
    return core::invalid_argument("the stored message is too large");
  }
  const std::size_t end = std::min(stored.find('\n'), stored.size());
  RenderedHead head;
  const core::Status read = core::read_json(stored.substr(0, end), kMaxRendered, head);
  if (!read) return read.error().in("the stored message");
  const bool whole = end == stored.size();
  if (whole && !head.body) {
    return core::invalid_argument("the stored message is not a rendered notification");
  }
  return Rendered{std::move(head.content_type),
                  whole ? std::move(*head.body) : std::string(stored.substr(end + 1)),
                  std::move(head.fields)};
}

}  // namespace tocsin::actions
