// What an SMTP transaction means for a delivery: pure.
#include "actions/transport/mailer.h"

namespace tocsin::actions {

using core::OutcomeClass;

namespace {

OutcomeClass class_of_reply(int code) {
  switch (code) {
    case 421:  // too many connections, or it is about to stop
      return OutcomeClass::throttled;
    case 432:  // the password is to be changed
    case 454:  // logging in is impossible for now
      return OutcomeClass::transient;
    case 530:  // authentication required
    case 534:
    case 535:
    case 538:
      return OutcomeClass::configuration;
    default:
      return code >= 400 && code < 500 ? OutcomeClass::transient : OutcomeClass::bad_payload;
  }
}

}  // namespace

core::AttemptOutcome classify(const MailResult& result) {
  core::AttemptOutcome out;
  out.code = result.code > 0 ? "smtp " + std::to_string(result.code) : "smtp";
  out.detail = result.detail;
  switch (result.failure) {
    case MailFailure::none:
      out.outcome = OutcomeClass::delivered;
      break;
    case MailFailure::unreachable:
      out.outcome = OutcomeClass::transient;
      break;
    case MailFailure::tls:
    case MailFailure::login:
      out.outcome = OutcomeClass::configuration;
      break;
    case MailFailure::refused:
      // Before any recipient: it is us that are refused, or our sender, and no shorter mail helps.
      out.outcome = result.code >= 500 && !result.recipients_asked ? OutcomeClass::configuration
                                                                   : class_of_reply(result.code);
      break;
    case MailFailure::no_answer:
      out.outcome = OutcomeClass::unknown;
      break;
  }
  return out;
}

}  // namespace tocsin::actions
