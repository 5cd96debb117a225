#include "actions/message.h"

#include <utility>

#include "actions/template.h"

namespace tocsin::actions {
namespace {

// A section that is left out takes its own line break along only when the next tag or text follows
// it directly.
constexpr char kText[] = R"({{#issues}}
{{tag}}  {{rule}}
{{summary}}

{{#details}}{{#rows}}
  {{padded}}{{value}}
{{/rows}}

{{/details}}{{/issues}}{{#hidden}}{{hidden}}

{{/hidden}}{{#home}}{{value}}

{{/home}}--)"
                         " \n{{footer}}\n";

constexpr char kHtml[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{headline}}</title></head>
<body style="font-family:sans-serif;color:#1f2328;max-width:44em">
{{#issues}}
<div style="border-left:4px solid {{colour}};padding:0 0 0 1em;margin:0 0 1.5em">
<p><b style="color:{{colour}}">{{tag}}</b> &nbsp;{{rule}}</p>
<p style="font-size:1.15em">{{summary}}</p>
{{#details}}<table style="border-spacing:0">
{{#rows}}
<tr><td style="color:#656d76;padding:.1em 1.2em .1em 0;vertical-align:top">{{name}}</td><td>{{#link}}<a href="{{value}}">{{value}}</a>{{/link}}{{^link}}{{value}}{{/link}}</td></tr>
{{/rows}}
</table>
{{/details}}</div>
{{/issues}}{{#hidden}}<p>{{hidden}}</p>
{{/hidden}}{{#home}}<p>{{#link}}<a href="{{value}}">{{value}}</a>{{/link}}{{^link}}{{value}}{{/link}}</p>
{{/home}}<p style="color:#656d76;font-size:.85em">{{footer}}</p>
</body></html>
)";

// A message that is over a limit of templates is filled in from the short form, which never is.
std::string filled(const Template& form, const core::Notification& notification,
                   const Sender& sender) {
  auto out = form.render(message_view(notification, sender));
  if (out || notification.minimal) return out ? std::move(*out) : headline(notification);
  core::Notification small = notification;
  small.minimal = true;
  return filled(form, small, sender);
}

}  // namespace

std::string text_body(const core::Notification& notification, const Sender& sender) {
  static const Template kForm = *Template::parse(kText, Escape::none);
  return filled(kForm, notification, sender);
}

std::string html_body(const core::Notification& notification, const Sender& sender) {
  static const Template kForm = *Template::parse(kHtml, Escape::html);
  return filled(kForm, notification, sender);
}

}  // namespace tocsin::actions
