#include "app/api/ack_desk.h"

#include <utility>

#include "app/view/ack_choice.h"
#include "app/view/ack_words.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Acknowledgement;

constexpr auto kAckReadBack = 5s;  // until what was written stands in our own view
constexpr std::size_t kMostOfAnAck = std::size_t{256} << 10;

core::Result<AckChoice> chosen_of(const ApiDesk& desk, const TopicView& view, const AckWish& wish) {
  const ToldGroups& groups = desk.told.groups();
  if (wish.what.empty()) return choose_group(view, groups, wish.group);
  return choose_acknowledged(view, wish.what, wish.job,
                             [&]() -> core::Result<const ToldGroups*> { return &groups; });
}

// With its id; and what is to be written.
core::Result<TakenOn> wished_ack(ApiDesk& desk, const AckWish& wish, const ApiCall& call,
                                 std::vector<core::OutRecord>& records) {
  const core::WallTime now = desk.clock.now();
  core::Result<TakenOn> out = TakenOn{};
  const auto seen = desk.view.read([&](const TopicView& view) {
    const auto choice = chosen_of(desk, view, wish);
    if (!choice) {
      out = choice.error();
      return;
    }
    const std::string& name = wish.what.empty() ? wish.group : wish.what;
    if (choice->open.empty()) {
      out = core::Error{core::Code::not_found,
                        "no issue of " + core::visible(name, 100) + " is open"};
      return;
    }
    Acknowledgement& ack = out->ack;
    ack = choice->names;
    ack.by = wish.by.empty() ? call.who.name : wish.by;
    ack.note = wish.note;
    ack.at = wish.at.value_or(now);
    ack.until = wish.until;
    ack.origin = wish.origin;
    ack.id = ack_id(ack);
    for (const auto& one : choice->open) out->open.push_back(one.first);
    records = ack_records(ack, view.acknowledgements(), now);
  });
  if (!seen) return seen.error();
  if (!out) return out.error();
  if (const auto good = routing::read_ack(routing::ack_json(out->ack)); !good) return good.error();
  return out;
}

}  // namespace

core::Value ack_fields(const Acknowledgement& ack) {
  auto out = core::parse_json(routing::ack_json(ack), kMostOfAnAck);
  return out ? std::move(*out) : core::Value();
}

core::Result<TakenOn> take_on(ApiDesk& desk, const AckWish& wish, const ApiCall& call) {
  std::vector<core::OutRecord> written;
  auto out = wished_ack(desk, wish, call, written);
  if (!out) return out;
  const std::string& id = out->ack.id;
  std::vector<core::OutRecord> records{
      audit_of(call, desk.clock.now(), "ack.set", id, core::Value(), ack_fields(out->ack))};
  for (core::OutRecord& record : written) records.push_back(std::move(record));
  if (const auto sent = desk.writer.write(records); !sent) return sent.error();
  const auto read = desk.view.await(
      [&](const TopicView& view) { return view.acknowledgements().contains(id); }, kAckReadBack);
  if (!read) return read.error();
  desk.log.info("api_ack_set", {{"id", id},
                                {"by", out->ack.by},
                                {"origin", out->ack.origin},
                                {"client", std::string(call.request.client)}});
  return out;
}

core::Status take_back(ApiDesk& desk, const std::string& id, const ApiCall& call) {
  core::Value before;
  const auto seen = desk.view.read([&](const TopicView& view) {
    const auto found = view.acknowledgements().find(id);
    if (found != view.acknowledgements().end()) before = ack_fields(found->second);
  });
  if (!seen) return seen;
  if (before.is_null()) {
    return core::Error{core::Code::not_found,
                       "there is no acknowledgement \"" + core::visible(id, 100) + "\""};
  }
  const std::vector<core::OutRecord> records{
      audit_of(call, desk.clock.now(), "ack.ended", id, std::move(before), core::Value()),
      ack_tombstone(id)};
  if (const auto sent = desk.writer.write(records); !sent) return sent;
  const auto read = desk.view.await(
      [&](const TopicView& view) { return !view.acknowledgements().contains(id); }, kAckReadBack);
  if (!read) return read;
  desk.log.info("api_ack_ended",
                {{"id", id}, {"by", call.who.name}, {"client", std::string(call.request.client)}});
  return core::ok();
}

}  // namespace tocsin::app
