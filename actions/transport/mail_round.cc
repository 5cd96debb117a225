#include "actions/transport/mail_round.h"

#include <algorithm>

namespace tocsin::actions {

using core::AttemptOutcome;
using core::OutcomeClass;

namespace {

struct Round {
  std::vector<std::string> reached;
  std::vector<std::pair<std::string, int>> put_off;
  std::vector<std::pair<std::string, int>> refused;
  MailResult last;      // that failed
  bool failed = false;  // a transaction did, and not by the answers to its recipients alone

  void refuse(const std::string& recipient, int code) {
    (code >= 500 ? refused : put_off).emplace_back(recipient, code);
  }
};

// Everybody in `mail.to` was refused by the answer to RCPT.
bool by_recipients_alone(const Mail& mail, const MailResult& result) {
  return result.failure == MailFailure::refused && result.code != 421 &&
         result.refused.size() == mail.to.size();
}

void transact(Mailer& mailer, const Mail& mail, Round& round) {
  const MailResult result = mailer.send(mail);
  const auto code_of = [&](const std::string& recipient) {
    const auto found = std::find_if(result.refused.begin(), result.refused.end(),
                                    [&](const auto& one) { return one.first == recipient; });
    return found == result.refused.end() ? 0 : found->second;
  };
  if (result.failure == MailFailure::none || by_recipients_alone(mail, result)) {
    for (const std::string& recipient : mail.to) {
      const int code = code_of(recipient);
      if (code > 0) {
        round.refuse(recipient, code);
      } else {
        round.reached.push_back(recipient);
      }
    }
    if (result.failure != MailFailure::none && !round.failed) round.last = result;
    return;
  }
  round.failed = true;
  round.last = result;
  for (const std::string& recipient : mail.to) {
    // An answer to the message itself, where it was for one alone, is that recipient's answer.
    const bool own =
        mail.to.size() == 1 && result.failure == MailFailure::refused && result.recipients_asked;
    const int code = own ? result.code : code_of(recipient);
    round.refuse(recipient, code);
  }
}

// Each alone, the first one another each time. A server that is down is not asked for each of them.
void one_by_one(Mailer& mailer, const Mail& mail, const std::vector<std::string>& to,
                std::uint32_t attempt, const std::function<core::Duration()>& now, Round& round) {
  const core::Duration end = now() + mail.timeout;
  for (std::size_t i = 0; i < to.size(); ++i) {
    Mail one = mail;
    one.to = {to[(i + attempt) % to.size()]};
    one.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(end - now());
    if (one.timeout.count() <= 0 || (round.failed && !round.last.recipients_asked)) {
      round.refuse(one.to.front(), 0);
      continue;
    }
    transact(mailer, one, round);
  }
}

std::string with_code(const std::pair<std::string, int>& recipient) {
  return recipient.first + (recipient.second > 0 ? " " + std::to_string(recipient.second) : "");
}

std::string words_on(const Round& round) {
  std::string out;
  for (const auto& [what, who] :
       {std::pair<const char*, const decltype(round.refused)*>{"refused: ", &round.refused},
        {"put off: ", &round.put_off}}) {
    for (const auto& [recipient, code] : *who) {
      out +=
          &recipient == &who->front().first ? (out.empty() ? "" : "; ") + std::string(what) : ", ";
      out += recipient + (code > 0 ? " (" + std::to_string(code) + ")" : "");
    }
  }
  return out;
}

}  // namespace

Recipients recipients_of(const std::vector<std::string>& all, const HandleList& handles) {
  const std::string_view only = value_of(handles, kept::kOnlyTo);
  if (!only.empty()) return {{std::string(only)}, {}};
  Recipients out;
  for (const std::string& address : all) {
    const bool otherwise = std::any_of(handles.begin(), handles.end(), [&](const auto& handle) {
      return handle.first == kept::kNotTo && handle.second == address;
    });
    (otherwise ? out.otherwise : out.now).push_back(address);
  }
  if (out.now.empty()) out.now = std::exchange(out.otherwise, {});
  return out;
}

AttemptOutcome send_round(Mailer& mailer, Mail mail, const Recipients& recipients,
                          std::uint32_t attempt, const std::function<core::Duration()>& now) {
  Round round;
  mail.to = recipients.now;
  if (attempt <= 1 || recipients.now.size() == 1) {
    transact(mailer, mail, round);
  } else {
    one_by_one(mailer, mail, recipients.now, attempt, now, round);
  }
  if (round.reached.empty()) {
    AttemptOutcome out = classify(round.last);
    const bool later = std::any_of(round.put_off.begin(), round.put_off.end(),
                                   [](const auto& one) { return one.second > 0; });
    if (round.failed) return out;
    if (later) {  // do not give up because the last answer was a 5yz
      out.outcome = OutcomeClass::transient;
      out.held = true;
      out.code = "smtp " + std::to_string(round.put_off.front().second);
      out.handles.emplace_back(kept::kFault, "recipient");
    }
    for (const auto& one : round.refused) add(out.handles, kept::kRefused, with_code(one));
    for (const auto& one : round.put_off) add(out.handles, kept::kPutOff, with_code(one));
    return out;
  }
  AttemptOutcome out;
  out.code = "smtp 250";
  out.detail = words_on(round);
  for (const std::string& one : recipients.otherwise) round.put_off.emplace_back(one, 0);
  for (const auto& one : round.refused) add(out.handles, kept::kRefused, with_code(one));
  for (const auto& one : round.put_off) add(out.handles, kept::kPutOff, with_code(one));
  return out;
}

}  // namespace tocsin::actions
