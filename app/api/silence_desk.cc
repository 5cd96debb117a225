#include "app/api/silence_desk.h"

#include <vector>

#include "app/view/silence_records.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Silence;

constexpr auto kReadBack = 5s;  // until what was written stands in our own view

core::Value kept_silence(const KnownSilences& known, const std::string& id) {
  const auto found = known.find(id);
  return found == known.end() ? core::Value() : silence_fields(found->second);
}

// Who has written may rely on it: it stands in the topic, and our own view has read it.
core::Status put_silence(ApiDesk& desk, const Silence& silence, const KnownSilences& known,
                         const char* what, const ApiCall& call) {
  const core::WallTime now = desk.clock.now();
  auto records = silence_records(silence, known, now);
  records.insert(records.begin(),
                 audit_of(call, now, what, silence.id, kept_silence(known, silence.id),
                          silence_fields(silence)));
  if (auto written = desk.writer.write(records); !written) return written;
  return desk.view.await(
      [&](const TopicView& view) {
        const auto found = view.silences().find(silence.id);
        return found != view.silences().end() && found->second.ends_at == silence.ends_at &&
               found->second.comment == silence.comment;
      },
      kReadBack);
}

// An end or a comment may be changed; with another begin or other matchers it is another silence.
bool only_its_end_changes(const Silence& old, const Silence& asked, core::WallTime now) {
  return old.ends_at > now && old.matchers == asked.matchers && old.starts_at == asked.starts_at;
}

core::Status check_asked(const Silence& silence, std::size_t known, core::WallTime now) {
  if (const auto good = routing::check(silence); !good) return good;
  if (silence.ends_at <= now) return core::invalid_argument("endsAt: it lies in the past");
  if (silence.comment.empty())
    return core::invalid_argument("comment: say why, for those who find it");
  if (known >= routing::kMaxSilences) {
    return core::Error{core::Code::failed_precondition,
                       "there are " + std::to_string(known) + " silences, as many as may be"};
  }
  return core::ok();
}

}  // namespace

core::Error no_silence(std::string_view id) {
  return {core::Code::not_found, "there is no silence \"" + core::visible(id, 100) + "\""};
}

core::Result<KnownSilences> known_silences(ApiDesk& desk) {
  KnownSilences known;
  const auto seen = desk.view.read([&](const TopicView& view) { known = view.silences(); });
  if (!seen) return seen.error();
  return known;
}

core::Result<Silence> preview_silence(ApiDesk& desk, Silence asked, const ApiCall& call) {
  asked.created_at = desk.clock.now();
  if (asked.created_by.empty()) asked.created_by = call.who.name;
  asked.id = silence_id(asked);
  if (const auto good = check_asked(asked, 0, asked.created_at); !good) return good.error();
  return asked;
}

core::Result<Silence> set_silence(ApiDesk& desk, Silence asked, const std::string& id,
                                  const ApiCall& call) {
  const auto known = known_silences(desk);
  if (!known) return known.error();
  const core::WallTime now = desk.clock.now();
  asked.created_at = now;
  if (asked.created_by.empty()) asked.created_by = call.who.name;
  const auto old = id.empty() ? known->end() : known->find(id);
  if (!id.empty() && old == known->end()) return no_silence(id);
  const bool same = old != known->end() && only_its_end_changes(old->second, asked, now);
  asked.id = same ? old->first : silence_id(asked);
  if (const auto good = check_asked(asked, known->size(), now); !good) return good.error();
  if (old != known->end() && !same && old->second.ends_at > now) {
    const auto ended =
        put_silence(desk, ended_silence(old->second, now), *known, "silence.ended", call);
    if (!ended) return ended.error();
  }
  if (const auto written = put_silence(desk, asked, *known, "silence.set", call); !written)
    return written.error();
  desk.log.info("api_silence_set", {{"id", asked.id},
                                    {"matchers", asked.matchers},
                                    {"by", call.who.name},
                                    {"client", std::string(call.request.client)}});
  return asked;
}

core::Status end_silence(ApiDesk& desk, const std::string& id, const ApiCall& call) {
  const auto known = known_silences(desk);
  if (!known) return known.error();
  const auto found = known->find(id);
  if (found == known->end()) return no_silence(id);
  const core::WallTime now = desk.clock.now();
  if (found->second.ends_at <= now) return core::ok();  // over already
  const auto written =
      put_silence(desk, ended_silence(found->second, now), *known, "silence.ended", call);
  if (!written) return written;
  desk.log.info(
      "api_silence_ended",
      {{"id", found->first}, {"by", call.who.name}, {"client", std::string(call.request.client)}});
  return core::ok();
}

}  // namespace tocsin::app
