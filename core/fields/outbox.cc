#include "core/fields/outbox.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/fields/json_in.h"
#include "core/fields/notification.h"
#include "core/fields/out.h"
#include "core/frame.h"

namespace tocsin::core {
namespace {

/// The first line.
template <typename Message, typename Issues>
struct Head {
  Message& message;
  Issues& listing;
};
template <typename A, typename Message, typename Issues>
void fields(A& io, Head<Message, Issues>& head) {
  head_fields(io, head.message);
  io.field("listing", head.listing, "", How::required);
}
template <typename A, typename Message, typename Issues>
void fields(A& io, const Head<Message, Issues>& head) {
  head_fields(io, head.message);
  io.field("listing", head.listing, "", How::required);
}

/// The second line.
template <typename Message>
struct Lists {
  Message& message;
};
template <typename A, typename Message>
void fields(A& io, const Lists<Message>& lists) {
  issue_lists(io, lists.message);
}
template <typename A, typename Message>
void fields(A& io, Lists<Message>& lists) {
  issue_lists(io, lists.message);
}

}  // namespace

std::string write_outbox(const Notification& notification) {
  const Listing listing = listing_of(notification);
  std::string out = write_json(Head<const Notification, const Listing>{notification, listing});
  out += '\n';
  out += notification.packed ? notification.packed->text
                             : write_json(Lists<const Notification>{notification});
  out += '\n';
  return out += notification.rendered;
}

Result<Notification> read_outbox(std::string_view record) {
  if (record.size() > kMaxFrameBytes) return invalid_argument("larger than a record may be");
  Notification out;
  const std::size_t head_end = record.find('\n');
  if (head_end == record.npos) {
    if (const Status read = read_json(record, kMaxFrameBytes, out); !read) return read.error();
    return out;
  }
  const std::size_t end = record.find('\n', head_end + 1);
  if (end == record.npos) return invalid_argument("the line of the issues has no end");
  auto packed = std::make_shared<PackedIssues>();
  Head<Notification, Listing> head{out, packed->listing};
  const Status read = read_json(record.substr(0, head_end), kMaxFrameBytes, head);
  if (!read) return read.error();
  packed->text = record.substr(head_end + 1, end - head_end - 1);
  out.packed = std::move(packed);
  out.rendered = record.substr(end + 1);
  return out;
}

Status unpack(Notification& notification) {
  if (!notification.packed) return core::ok();
  Lists<Notification> lists{notification};
  const Status read = read_json(notification.packed->text, kMaxFrameBytes, lists);
  if (!read) {
    notification.issues.clear();
    notification.suppressed.clear();
    notification.runs.clear();
    return read;
  }
  notification.packed.reset();
  return core::ok();
}

}  // namespace tocsin::core
