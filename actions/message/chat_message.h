// What a chat is told of a notification: the parts of a message, each bounded and written in the
// markup of one tool. Internal to actions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "actions/message/answer_buttons.h"
#include "actions/message/console_lines.h"
#include "actions/message/event_json.h"
#include "actions/message/run_words.h"
#include "core/notification.h"

namespace tocsin::actions {

/// How one tool writes text. `plain` makes text of others stand for itself: nothing in it becomes
/// markup, and it mentions nobody.
struct ChatMarkup {
  std::string_view bold;  // opens and, if bold_end is empty, closes
  std::string_view bold_end;
  std::string_view code;  // around a command on lines of its own; both empty: the bare line
  std::string_view code_end;
  std::string (*plain)(std::string_view text);
  /// A name that leads to a page. null: the tool has its own element for links.
  std::string (*link)(const std::string& name, const std::string& url);
  bool escapes_code = true;  // false: code shows text as it is, and cannot hold a backtick
};

/// **bold**, fenced code that shows text as it is, [name](url).
ChatMarkup markdown(std::string (*plain)(std::string_view text));

/// Bytes of UTF-8, which are never fewer than the characters that a tool counts.
struct ChatLimits {
  std::size_t title = 240;
  std::size_t text = 1500;     // one paragraph
  std::size_t value = 400;     // one field
  std::size_t console = 1500;  // what a failed process said last
  std::size_t fields = 10;     // how many
  std::size_t body = 16'000;   // the whole request
};

/// Every text is one line of the tool's markup; an empty one is left out.
struct ChatMessage {
  std::string tone;                    // of tone_named()
  std::string title;                   // "🔴 [error] digits: loss is NaN since step 186"
  std::string summary;                 // what was found: one sentence
  std::string description;             // more of it
  std::vector<std::string> console;    // what a failed process said last, a line each
  Rows fields;                         // name and value, the most telling first
  std::vector<std::string> advice;     // what to do
  std::string followed;                // "9 issues followed"
  std::vector<std::string> followers;  // one line each
  std::string hidden;                  // "7 more issues are not shown."
  Rows links;                          // name and URL, http or https, fit for every markup
  std::string command;                 // one to paste
  std::string footer;
  std::vector<AnswerButton> buttons;  // of tools that report clicks
};

ChatMessage chat_message(const core::Notification& notification, const Sender& sender,
                         const ChatMarkup& markup, const ChatLimits& limits);

/// Leaves out what is needed least: followers, advice beyond the first, the older half of the last lines, description, advice, fields
/// from the end, links, command. Title and summary stay. False: nothing is left to leave out.
bool shorten(ChatMessage& message);

// Pieces that most tools put together, in their markup, without a line break at the end.
std::string bold(const std::string& text, const ChatMarkup& markup);
/// Summary and description.
std::string finding(const ChatMessage& message);
/// "**Where**: loss, worker_0", a line each.
std::string field_lines(const ChatMessage& message, const ChatMarkup& markup);
std::string console_text(const ChatMessage& message, const ChatMarkup& markup);
std::string advice_text(const ChatMessage& message, const ChatMarkup& markup);
std::string followed_text(const ChatMessage& message, const ChatMarkup& markup);
std::string command_text(const ChatMessage& message, const ChatMarkup& markup);
/// The four above.
std::string rest(const ChatMessage& message, const ChatMarkup& markup);
/// "Runbook · Report"; empty where there is no link.
std::string link_line(const ChatMessage& message, const ChatMarkup& markup);
/// Paragraphs with a blank line between them; empty ones are left out.
std::string paragraphs(const std::vector<std::string>& texts);

/// A backslash before every character of `marks`.
std::string backslashed(std::string_view text, std::string_view marks);
/// The same, and an invisible character behind each @: a backslash does not hold a mention back where it
/// is looked for in the text as it is shown.
std::string unmentioned(std::string_view text, std::string_view marks);
/// & < > as entities.
std::string with_entities(std::string_view text);

}  // namespace tocsin::actions
