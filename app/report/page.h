// What a report shows, before it is written as a page or as text: sections of a few kinds of blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tocsin::app::report {

struct Paragraph {
  std::string text;
  bool important = false;
};

/// `head` may be empty. A row may be shorter than the others.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

/// Lines over one axis. What is not finite is a gap.
struct LineChart {
  struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;
  };
  std::string x;
  std::string y;
  std::vector<Series> series;
};

/// Lying bars, in this order; `unit` stands behind each number ("%").
struct BarChart {
  std::string unit;
  std::vector<std::pair<std::string, double>> bars;
};

/// Parts of a whole, in percent.
struct Shares {
  std::vector<std::pair<std::string, double>> parts;
};

/// One box per row: whiskers from min to max, the box from p05 to p95, a mark at p50.
struct BoxChart {
  struct Box {
    std::string name;
    double min = 0;
    double p05 = 0;
    double p50 = 0;
    double p95 = 0;
    double max = 0;
  };
  std::string unit;
  std::vector<Box> boxes;
};

/// A square of numbers: `rows` down, `columns` across, both named alike.
struct Matrix {
  std::string rows;
  std::string columns;
  std::vector<std::string> names;
  std::vector<std::vector<double>> cells;
};

/// When something lasted, one lane per name; `grade` is a severity ("error").
struct Timeline {
  struct Span {
    double from = 0;
    double to = 0;
    std::string grade;
    std::string text;
  };
  struct Lane {
    std::string name;
    std::vector<Span> spans;
  };
  std::string x;
  double from = 0;
  double to = 0;
  std::vector<Lane> lanes;
};

/// Lines over steps as they are stored, with what happened at which step. Between `low` and `high`
/// lies what one point stands for; a point without finite numbers has neither.
struct CurveChart {
  struct Point {
    double x = 0;
    double low = 0;
    double mean = 0;
    double high = 0;
    bool finite = true;                 // some of its numbers are
    std::optional<double> bad_at = {};  // the first x of those that are not
    double weight = 1;                  // how many numbers the mean is of
  };
  struct Series {
    std::string name;
    std::vector<Point> points;
  };
  struct Mark {
    double x = 0;
    std::string kind;  // sign | alarm | stop | checkpoint
    std::string text;
  };
  std::string title;
  std::string x;
  double width = 1;  // of what one point stands for, in steps
  std::vector<Series> series;
  std::vector<Mark> marks;
};

/// Rows of tensors over columns of steps: a number for each cell, NaN where there is none.
struct HeatStrip {
  struct Row {
    std::string first;  // names, of several tensors in one row
    std::string last;
    std::vector<double> cells;
    std::vector<bool> bad;              // some of the cell's numbers are not finite
    std::optional<double> bad_at = {};  // the first step of those
  };
  std::string title;
  double from = 0;
  double width = 1;  // steps of a column
  bool logarithmic = false;
  std::size_t tensors = 0;  // that the rows stand for
  std::vector<Row> rows;    // of equal length
};

struct Block;

/// What is folded up until somebody asks for it; `aside`: left out of a text.
struct Group {
  std::string title;
  std::vector<Block> blocks;
  bool aside = false;
};

struct Block {
  std::variant<Paragraph, Table, LineChart, BarChart, Shares, BoxChart, Matrix, Timeline,
               CurveChart, HeatStrip, Group>
      of;
};

struct Section {
  std::string title;
  std::vector<Block> blocks;

  template <typename T>
  void add(T block) {
    blocks.push_back(Block{std::move(block)});
  }
};

struct Page {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // name, value
  std::vector<Section> sections;
  std::string note;       // at the end
  std::string json = {};  // the same for programs, which the page carries; empty: it carries none
  std::string as_of =
      {};  // of a run that goes on, what the page stands for: "2026-11-27T18:58:30Z"; empty: it has ended
};

/// One self-contained file without any script: everything that came from outside is escaped, and the
/// page allows itself nothing but its own style.
std::string page_html(const Page& page);
/// What the page allows itself: its own style, which is named by its hash.
std::string page_policy();
/// The same for a terminal; charts are tables there.
std::string page_text(const Page& page);
/// Of page_markdown(): issues, what was done, how the training went.
inline constexpr std::size_t kMarkdownSections = 3;
/// For the text of a merge request: the facts, and the first `sections`; of charts their sentence.
std::string page_markdown(const Page& page, std::size_t sections);

/// Six digits: 0.000123457, 1e-07, 1048576; NaN and ∞ in words.
std::string number_text(double value);

}  // namespace tocsin::app::report
