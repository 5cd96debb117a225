#include "app/api/silence_desk.h"

#include <optional>
#include <utility>
#include <vector>

#include "app/api/silence_life.h"
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

core::Error changed_meanwhile(const Silence& silence) {
  return {core::Code::failed_precondition,
          "silence " + silence.id + " is at version " + std::to_string(silence.version) +
              " now: somebody changed it; read it, and send the change again with that version"};
}

// Who has written may rely on it: it stands in the topic, and our own view has read it. Somebody else
// may have changed it first; then that stands.
core::Status put_silences(ApiDesk& desk, const std::vector<Silence>& silences,
                          const KnownSilences& known, const ApiCall& call) {
  const core::WallTime now = desk.clock.now();
  std::vector<core::OutRecord> records;
  for (const Silence& silence : silences) {
    const char* what = silence.ends_at <= now ? "silence.ended" : "silence.set";
    records.push_back(audit_of(call, now, what, silence.id, kept_silence(known, silence.id),
                               silence_fields(silence)));
  }
  for (core::OutRecord& record : silence_records(silences, known, now)) {
    records.push_back(std::move(record));
  }
  if (auto written = desk.writer.write(records); !written) return written;
  std::optional<Silence> other;
  const auto read = desk.view.await(
      [&](const TopicView& view) {
        for (const Silence& silence : silences) {
          const auto found = view.silences().find(silence.id);
          if (found == view.silences().end() || found->second.version < silence.version)
            return false;
          if (!(found->second == silence)) other = found->second;
        }
        return true;
      },
      kReadBack);
  if (!read || !other) return read;
  return changed_meanwhile(*other);
}

// What a form does not say of a silence stays as it is.
void keep_the_rest(const Silence& old, const SilenceWish& wish, Silence& asked) {
  const auto named = [&](const char* field) { return wish.named.contains(field); };
  if (!named("actions")) asked.actions = old.actions;
  if (!named("until_resolved")) asked.until_resolved = old.until_resolved;
  if (!named("quiet_for") && !named("until_resolved")) asked.quiet_for = old.quiet_for;
  if (!named("auto_expire_unmatched")) asked.auto_expire_unmatched = old.auto_expire_unmatched;
  if (!named("announce_on_unmute")) asked.announce_on_unmute = old.announce_on_unmute;
  if (!named("recurrence")) asked.recurrence = old.recurrence;
  if (!named("annotations") && asked.annotations.empty()) asked.annotations = old.annotations;
  // A client that knows one set shows and sends back the first.
  if (asked.matcher_sets.empty() && old.matcher_sets.size() > 1 &&
      asked.matchers == old.matcher_sets.front()) {
    asked.matchers.clear();
    asked.matcher_sets = old.matcher_sets;
  }
}

// What is to be written; the last one is what stands.
core::Result<std::vector<Silence>> wished(const std::vector<routing::TimeInterval>& intervals,
                                          SilenceWish wish, const KnownSilences& known,
                                          const ApiCall& call, core::WallTime now) {
  Silence& silence = wish.silence;
  if (wish.named.contains("recurrence")) {
    if (const auto filled = fill_recurrence(intervals, silence); !filled) return filled.error();
  }
  if (silence.created_by.empty()) silence.created_by = call.who.name;
  const auto old = wish.id.empty() ? known.end() : known.find(wish.id);
  if (!wish.id.empty() && old == known.end()) return no_silence(wish.id);
  std::vector<Silence> out;
  if (old == known.end()) {
    out.push_back(new_silence(std::move(silence), now));
  } else {
    if (wish.version != 0 && wish.version != old->second.version)
      return changed_meanwhile(old->second);
    keep_the_rest(old->second, wish, silence);
    out = changed_silence(old->second, std::move(silence), now);
  }
  const std::size_t others = known.size() - (known.contains(out.back().id) ? 1 : 0);
  if (const auto good = routing::check_asked(out.back(), others, now, wish.force); !good)
    return good.error();
  return out;
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

ApiParameter force_parameter() {
  return {"force", ParameterType::flag,
          "true: also longer than 90 days, and with nothing but negative matchers"};
}

bool is_forced(const ApiCall& call) { return call.query.value("force") == "true"; }

core::Result<Silence> preview_silence(ApiDesk& desk, SilenceWish wish, const ApiCall& call) {
  const auto known = known_silences(desk);
  if (!known) return known.error();
  auto out = wished(desk.time_intervals, std::move(wish), *known, call, desk.clock.now());
  if (!out) return out.error();
  return std::move(out->back());
}

core::Result<Silence> set_silence(ApiDesk& desk, SilenceWish wish, const ApiCall& call) {
  const auto known = known_silences(desk);
  if (!known) return known.error();
  const auto to_write =
      wished(desk.time_intervals, std::move(wish), *known, call, desk.clock.now());
  if (!to_write) return to_write.error();
  if (const auto written = put_silences(desk, *to_write, *known, call); !written)
    return written.error();
  const Silence& standing = to_write->back();
  desk.log.info("api_silence_set", {{"id", standing.id},
                                    {"matchers", matchers_text(standing)},
                                    {"by", call.who.name},
                                    {"client", std::string(call.request.client)}});
  return standing;
}

core::Status end_silence(ApiDesk& desk, const std::string& id, const ApiCall& call) {
  const auto known = known_silences(desk);
  if (!known) return known.error();
  const auto found = known->find(id);
  if (found == known->end()) return no_silence(id);
  const core::WallTime now = desk.clock.now();
  if (found->second.ends_at <= now) return core::ok();  // over already
  const auto written = put_silences(desk, {ended_silence(found->second, now)}, *known, call);
  if (!written) return written;
  desk.log.info(
      "api_silence_ended",
      {{"id", found->first}, {"by", call.who.name}, {"client", std::string(call.request.client)}});
  return core::ok();
}

}  // namespace tocsin::app
