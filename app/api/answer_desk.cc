#include "app/api/answer_desk.h"

#include <algorithm>
#include <utility>

#include "app/api/ack_desk.h"
#include "app/api/silence_desk.h"
#include "app/api/stop_desk.h"
#include "app/view/ack_choice.h"
#include "app/view/ack_words.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using actions::AnswerTarget;
using Purpose = AnswerTarget::Purpose;
using State = AnswerView::State;

constexpr std::size_t kShownTitles = 5;
constexpr std::size_t kLongestTitle = 200;
constexpr const char* kAnsweredFrom =
    "answered_from";  // annotation of a silence: the target's text

void end_with(AnswerView& out, State state, std::string words) {
  out.state = state;
  out.words = std::move(words);
}

std::string clock_time(core::WallTime time) {
  std::string out = core::to_rfc3339(time).substr(0, 16);
  out[10] = ' ';
  return out + " UTC";
}

/// The newest acknowledgement if all that is open is acknowledged; nullptr: something is nobody's.
const routing::Acknowledgement* all_taken(const TopicView& view, const AckChoice& choice,
                                          core::WallTime now) {
  const routing::Acknowledgement* newest = nullptr;
  for (const auto& one : choice.open) {
    const auto* ack = acknowledged(view, one.first, *one.second, now);
    if (ack == nullptr) return nullptr;
    if (newest == nullptr || newest->at < ack->at) newest = ack;
  }
  return newest;
}

void look_for_silence(const TopicView& view, const AnswerTarget& target, const AnswerBy& by,
                      core::WallTime now, AnswerView& out) {
  const std::string text = target.text();
  for (const auto& one : view.silences()) {
    const routing::Silence& silence = one.second;
    const auto from = silence.annotations.find(kAnsweredFrom);
    if (from == silence.annotations.end() || from->second != text) continue;
    if (silence.ends_at > now) {
      end_with(out, State::done_already,
               "Silenced already until " + clock_time(silence.ends_at) + " by " +
                   core::visible(silence.created_by, kLongestTitle) + " (" + silence.id + ").");
    } else if (by.once && out.state == State::ready) {
      end_with(out, State::done_already,
               "This link was used: it silenced until " + clock_time(silence.ends_at) + ".");
    }
  }
}

void look_at_incident(ApiDesk& desk, const TopicView& view, const AnswerTarget& target,
                      const AnswerBy& by, AnswerView& out) {
  const core::WallTime now = desk.clock.now();
  const ToldGroups& told = desk.told.groups();
  const auto group = told.group_of(target.group);
  if (!group || group->empty())
    return end_with(out, State::over, "This incident is over, and forgotten here.");
  out.group = *group;
  if (told.generation_of(*group) > target.generation) {
    return end_with(out, State::over,
                    "That incident is over. Another one has begun since: use its own message.");
  }
  const AckChoice choice = choose_group(view, told, *group);
  for (const auto& one : choice.open) {
    if (out.open.size() == kShownTitles) {
      ++out.more_open;
      continue;
    }
    out.open.push_back(core::visible(one.second->newest.summary, kLongestTitle));
  }
  const auto& episodes = told.issues_of(*group);
  const auto newest = episodes.find(target.issue_key);
  if (newest != episodes.end() && newest->second > target.episode) {
    return end_with(out, State::over,
                    "That issue had ended, and fires again. Use the newest message about it.");
  }
  const auto seen = view.issues().find(target.issue_key);
  if (choice.open.empty() || seen == view.issues().end())
    return end_with(out, State::over, "This incident is over: nothing of it fires any more.");
  out.issue = seen->second.newest;
  if (target.purpose == Purpose::silence) return look_for_silence(view, target, by, now, out);
  if (const auto* ack = all_taken(view, choice, now)) {
    end_with(out, State::done_already,
             "Acknowledged already by " + core::visible(ack->by, kLongestTitle) + ", " +
                 clock_time(ack->at) + ".");
  }
}

bool about_a_stop(const AnswerTarget& target) {
  return target.purpose == Purpose::approve_stop || target.purpose == Purpose::cancel_stop;
}

core::Result<Answered> decide_on_stop(ApiDesk& desk, const AnswerTarget& target, const AnswerBy& by,
                                      const ApiCall& call) {
  const bool approves = target.purpose == Purpose::approve_stop;
  const auto decided = approves ? approve_stop(desk, target.stop, by.note, call)
                                : reject_stop(desk, target.stop, by.note, call);
  if (decided) {
    return Answered{
        true, false,
        std::string(approves ? "Stop approved" : "Stop rejected") + " by " + call.who.name + "."};
  }
  const core::Code code = decided.error().code;
  if (code != core::Code::failed_precondition && code != core::Code::not_found)
    return decided.error();
  return Answered{false, true, core::visible(decided.error().message, kLongestTitle * 2) + "."};
}

core::Result<Answered> begin_silence(ApiDesk& desk, const AnswerTarget& target,
                                     const AnswerView& view, const AnswerBy& by,
                                     const ApiCall& call) {
  std::string terms;
  for (const auto& [name, value] : actions::silenced_labels(view.issue)) {
    terms += (terms.empty() ? "" : ",") + name + "=\"";
    for (const char c : value)
      terms += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string{c};
    terms += "\"";
  }
  if (terms.empty())
    return Answered{false, true,
                    "It has no label by which it could be silenced: see tocsin silence."};
  SilenceWish wish;
  wish.silence.matchers = "{" + terms + "}";
  wish.silence.starts_at = desk.clock.now();
  wish.silence.ends_at = wish.silence.starts_at + actions::kAnswerSilence;
  wish.silence.comment = by.note;
  wish.silence.actions = "notify";
  wish.silence.annotations[kAnsweredFrom] = target.text();
  const auto set = set_silence(desk, std::move(wish), call);
  if (!set) return set.error();
  return Answered{true, false,
                  "Silenced until " + clock_time(set->ends_at) + " by " + call.who.name + ": " +
                      actions::silenced_words(view.issue) + ". To end it: tocsin silence expire " +
                      set->id};
}

core::Result<Answered> acknowledge(ApiDesk& desk, const AnswerView& view, const AnswerBy& by,
                                   const ApiCall& call) {
  AckWish wish;
  wish.group = view.group;
  wish.note = by.note;
  wish.origin = by.origin;
  const auto taken = take_on(desk, wish, call);
  if (!taken) return taken.error();
  return Answered{true, false, "Acknowledged by " + taken->ack.by + "."};
}

}  // namespace

core::Result<AnswerView> look_at_answer(ApiDesk& desk, const AnswerTarget& target,
                                        const AnswerBy& by) {
  AnswerView out;
  if (target.until && *target.until <= desk.clock.now()) {
    end_with(out, State::over, "This link expired at " + clock_time(*target.until) + ".");
    return out;
  }
  const auto seen =
      desk.view.read([&](const TopicView& view) { look_at_incident(desk, view, target, by, out); });
  if (!seen) return seen.error();
  return out;
}

core::Result<Answered> answer_message(ApiDesk& desk, const AnswerTarget& target, const AnswerBy& by,
                                      const ApiCall& call) {
  if (about_a_stop(target)) return decide_on_stop(desk, target, by, call);
  const auto view = look_at_answer(desk, target, by);
  if (!view) return view.error();
  if (view->state != State::ready) return Answered{false, view->state == State::over, view->words};
  return target.purpose == Purpose::silence ? begin_silence(desk, target, *view, by, call)
                                            : acknowledge(desk, *view, by, call);
}

}  // namespace tocsin::app
