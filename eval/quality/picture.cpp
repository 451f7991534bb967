// SPDX-License-Identifier: MIT
// The picture of `snapkv eval quality`. Its colours are chosen by the viewer's theme, so that one
// file serves light and dark pages.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "eval/quality/quality.h"

namespace snapkv::eval {
namespace {

constexpr const char* kStyle =
    "<style>\n"
    ".page{fill:#ffffff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0}\n"
    ".line{fill:none;stroke-width:2.5}.line0{stroke:#0969da}.line1{stroke:#bc4c00}\n"
    ".dot0{fill:#0969da}.dot1{fill:#bc4c00}\n"
    "@media(prefers-color-scheme:dark){\n"
    ".page{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#3d444d}\n"
    ".line0{stroke:#58a6ff}.line1{stroke:#f0883e}.dot0{fill:#58a6ff}.dot1{fill:#f0883e}}\n"
    "</style>\n";

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : to_utf8(std::string(text))) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (static_cast<unsigned char>(c) >= ' ') {  // XML has no control characters
      out += c;
    }
  }
  return out;
}

std::string svg_text(double x, double y, const char* attributes, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     xml_text(text));
}

// Where rows and shares are in the picture.
struct PictureScale {
  double left = 60, right = 460, top = 60, bottom = 290;
  double lowest = 0;  // the share at the bottom
  size_t n_rows = 1;

  double x(size_t i) const {
    if (n_rows == 1) return (left + right) / 2;
    return left + 20 +
           (right - left - 40) * static_cast<double>(i) / static_cast<double>(n_rows - 1);
  }
  double y(double share) const { return bottom - (bottom - top) * (share - lowest) / (1 - lowest); }
};

double part_share(const QualityPart& part, size_t i) {
  return static_cast<double>(part.n_kept[i]) / static_cast<double>(part.n_answered);
}

PictureScale make_scale(const QualityResult& result) {
  PictureScale scale;
  scale.n_rows = result.rows.size();
  double least = 1;
  for (const QualityPart& part : result.parts) {
    for (size_t i = 0; i < scale.n_rows && part.n_answered > 0; ++i) {
      least = std::min(least, part_share(part, i));
    }
  }
  // a tenth below the least, so that small differences do not look large
  scale.lowest = std::clamp(std::floor(10 * least - 0.5) / 10, 0.0, 0.8);
  return scale;
}

std::string draw_axes(const QualityResult& result, const PictureScale& scale) {
  std::string out;
  const int low = static_cast<int>(std::lround(100 * scale.lowest));
  const int step = low >= 50 ? 10 : 20;
  for (int percent = 100; percent >= low; percent -= step) {
    const double y = scale.y(percent / 100.0);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        scale.left, scale.right, y, y);
    out += svg_text(scale.left - 8, y + 4, "class=\"faint\" text-anchor=\"end\"",
                    fmt::format("{}%", percent));
  }
  for (size_t i = 0; i < scale.n_rows; ++i) {
    const bool last = i + 1 == scale.n_rows;
    out += svg_text(scale.x(i), scale.bottom + 22, "class=\"faint\" text-anchor=\"middle\"",
                    fmt::format("{}{}", result.rows[i], last ? " rows" : ""));
  }
  return out;
}

std::string draw_part(const QualityPart& part, size_t number, const PictureScale& scale,
                      double& label_y) {
  std::string points, dots;
  double y = 0;
  for (size_t i = 0; i < scale.n_rows; ++i) {
    const double x = scale.x(i);
    y = scale.y(part_share(part, i));
    points += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x, y);
    dots += fmt::format("<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n", number,
                        x, y);
  }
  label_y = std::max(y + 4, label_y + 34);
  const std::string attributes = fmt::format("class=\"dot{}\"", number);
  return fmt::format("<polyline class=\"line line{}\" points=\"{}\"/>\n", number, points) + dots +
         svg_text(scale.right + 6, label_y, attributes.c_str(), part.name) +
         svg_text(scale.right + 6, label_y + 15, attributes.c_str(),
                  fmt::format("of {:.0f} tokens", part.n_tokens));
}

}  // namespace

std::string quality_picture(const QualityResult& result) {
  const PictureScale scale = make_scale(result);
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 340\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n";
  out += kStyle;
  out += "<rect class=\"page\" width=\"600\" height=\"340\"/>\n";
  out += svg_text(20, 24, "class=\"ink\" font-weight=\"bold\"", result.model);
  out += svg_text(
      20, 42, "class=\"faint\"",
      fmt::format("share of the full cache's answers that stay, by rows kept ({})", result.policy));
  out += draw_axes(result, scale);
  // from the top down, so that labels below each other do not touch
  std::vector<size_t> order;
  for (size_t i = 0; i < result.parts.size(); ++i) {
    if (result.parts[i].n_answered > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const size_t last = scale.n_rows - 1;
    return part_share(result.parts[a], last) > part_share(result.parts[b], last);
  });
  double label_y = -1000;
  for (const size_t i : order) out += draw_part(result.parts[i], i % 2, scale, label_y);
  return out + "</svg>\n";
}

}  // namespace snapkv::eval
