#include "actions/transport/mime.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tocsin::actions {
namespace {

TEST(QuotedPrintable, EncodesWhatMailMayChange) {
  EXPECT_EQ(quoted_printable("a=b\n"), "a=3Db\r\n");
  EXPECT_EQ(quoted_printable("ö"), "=C3=B6");
  EXPECT_EQ(quoted_printable("blank \nnext"), "blank=20\r\nnext");
  EXPECT_EQ(quoted_printable(".\n..x"), "=2E\r\n=2E.x");
  EXPECT_EQ(quoted_printable("a\r\nb"), "a\r\nb");
  EXPECT_EQ(quoted_printable(std::string_view("\0\x7f", 2)), "=00=7F");
  EXPECT_EQ(quoted_printable(""), "");
}

TEST(QuotedPrintable, BreaksLinesBeforeTheyAreTooLong) {
  for (const char* letter : {"x", "ö", ".", " "}) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += letter;
    const std::string out = quoted_printable(text);
    std::size_t column = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      column = out[i] == '\n' ? 0 : column + 1;
      ASSERT_LE(column, 77u);  // 76 and the CR
      if (column == 1) {
        EXPECT_NE(out[i], '.');
      }
    }
  }
}

/// Lines of a header field, its name included.
std::vector<std::string> lines_of(const std::string& name, const std::string& text) {
  std::vector<std::string> out;
  std::string rest = name + text;
  for (std::size_t at = rest.find("\r\n"); at != std::string::npos; at = rest.find("\r\n")) {
    out.push_back(rest.substr(0, at));
    rest.erase(0, at + 2);
  }
  out.push_back(rest);
  return out;
}

TEST(HeaderText, IsLeftAloneWhenItIsAscii) {
  EXPECT_EQ(header_text("[error] a: b is c"), "[error] a: b is c");
}

TEST(HeaderText, EncodesFromTheFirstForeignWordToTheLast) {
  EXPECT_EQ(header_text("loss is NaN – stopped"), "loss is NaN =?UTF-8?B?4oCT?= stopped");
  EXPECT_EQ(header_text("a – b – c"), "a =?UTF-8?B?4oCTIGIg4oCT?= c");
}

TEST(HeaderText, EveryLineIsShortTheFirstWithTheNameOfTheField) {
  const std::string word(200, 'x');
  const std::string foreign = "é" + std::string(120, 'y');
  for (const std::string& text :
       {std::string("[error] llm-7b: loss is NaN since step 302 – stopped, checkpoint saved"),
        std::string("a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m "
                    "n o p q"),
        word, "a " + word + " b", foreign, "job " + foreign + " end", "=?UTF-8?B?4oCT?= " + word,
        std::string(66, 'z') + " é", std::string(300, ' ') + "x"}) {
    for (std::size_t column : {0U, 4U, 9U, 13U}) {
      for (const std::string& line :
           lines_of(std::string(column, 'S'), header_text(text, column))) {
        EXPECT_LE(line.size(), 76u) << line;
        EXPECT_NE(line.find_first_not_of(" S"), std::string::npos) << text;
      }
    }
  }
}

TEST(Mailbox, IsFoldedWithItsName) {
  const Mailbox long_name{"Öffentlichkeitsbereitschaft der Abteilung für große Modelle und mehr",
                          "a-rather-long-local-part@department.example.com"};
  for (const std::string& line : lines_of("To: ", to_header(long_name, 4)))
    EXPECT_LE(line.size(), 76u);
  EXPECT_EQ(to_header({"Ada L", "a@b.c"}), "\"Ada L\" <a@b.c>");
}

TEST(HeaderText, BecomesWordsThatAreShortAndCutBetweenLetters) {
  EXPECT_EQ(header_text("ö"), "=?UTF-8?B?w7Y=?=");
  std::string text;
  for (int i = 0; i < 50; ++i) text += "ö";
  const std::string out = header_text(text);
  std::size_t begin = 0;
  for (std::size_t at = out.find("\r\n "); at != std::string::npos; at = out.find("\r\n ", begin)) {
    EXPECT_LE(at - begin, 76u);
    begin = at + 3;
  }
  EXPECT_GT(begin, 0u);
}

TEST(HeaderText, CannotEndTheHeader) { EXPECT_EQ(header_text("a\r\nBcc: b"), "a  Bcc: b"); }

TEST(Mailbox, IsOneAddressWithOrWithoutAName) {
  EXPECT_EQ(parse_mailbox("a@b.c")->address, "a@b.c");
  EXPECT_EQ(parse_mailbox("Ada L <a@b.c>")->name, "Ada L");
  EXPECT_EQ(parse_mailbox("\"Ada\" <a@b.c>")->name, "Ada");
  for (const char* wrong : {"", "a", "@b", "a@", "a@b@c", "a b@c", "a@b.c, d@e.f", "Ada <a@b.c> x",
                            "a@b.c\r\nX: y", "Ada\r\nX: y <a@b.c>", "<a@b.c", "a@b.c>"}) {
    EXPECT_FALSE(parse_mailbox(wrong)) << wrong;
  }
}

TEST(MailDate, IsWrittenAsRfc5322Says) {
  EXPECT_EQ(mail_date(*core::parse_rfc3339("2026-01-02T03:04:05.678Z")),
            "Fri, 02 Jan 2026 03:04:05 +0000");
  EXPECT_EQ(mail_date(*core::parse_rfc3339("2024-02-29T23:59:59Z")),
            "Thu, 29 Feb 2024 23:59:59 +0000");
}

}  // namespace
}  // namespace tocsin::actions
