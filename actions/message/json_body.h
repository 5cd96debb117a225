// A JSON body as an operator wrote it: a template over the view of a message. Internal to actions.
#pragma once

#include <string>
#include <utility>

#include "actions/message/message_view.h"
#include "actions/message/template.h"

namespace tocsin::actions {

class JsonBody {
 public:
  /// invalid_argument: no template, a name that no message has, or no JSON once it is filled in.
  static core::Result<JsonBody> parse(std::string text);
  /// Always JSON: where the template goes over a limit or makes none of this message, native().
  [[nodiscard]] std::string fill(const core::Notification& notification,
                                 const Sender& sender) const;

 private:
  explicit JsonBody(Template form) : form_(std::move(form)) {}
  Template form_;
};

}  // namespace tocsin::actions
