// What somebody asks for by a button or a link in a message: looked at, and done.
#pragma once

#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/result.h"

namespace tocsin::app {

/// How things stand with what a button or a link is about.
struct AnswerView {
  enum class State { ready, done_already, over };
  State state = State::ready;
  std::string words;              // of done_already and over: a sentence that says why
  std::string group;              // the whole hash
  std::vector<std::string> open;  // titles of open issues, some of them
  std::size_t more_open = 0;
  core::Issue issue;  // the one that the message is named for
};

/// Who asks, and how the record calls where from.
struct AnswerBy {
  std::string note;
  std::string origin;
  bool once = false;  // the same text opens nothing a second time, also when what it began is over
};

/// Nothing is changed. unavailable: the topics cannot be read.
core::Result<AnswerView> look_at_answer(ApiDesk& desk, const actions::AnswerTarget& target,
                                        const AnswerBy& by);

struct Answered {
  bool done = false;  // false: nothing was left to do, and `words` say why
  bool over = false;  // it is about nothing that goes on
  std::string words;  // "Acknowledged by slack:ada (U02ABC3DE)."
};
/// Acknowledges, silences, or decides on a stop, as the CLI and the API do; the record of who changed what
/// is written with it. Errors: those of the desks.
core::Result<Answered> answer_message(ApiDesk& desk, const actions::AnswerTarget& target,
                                      const AnswerBy& by, const ApiCall& call);

}  // namespace tocsin::app
