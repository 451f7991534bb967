// SPDX-License-Identifier: MIT
// Facts that are not in a text itself, inserted between its sentences (facts.json).
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "eval/common/metrics.h"
#include "eval/make_qa/kinds.h"
#include "eval/make_qa/sentences.h"

namespace snapkv::eval {

extern const char* const kMakeQaFacts;  // generated: see CMakeLists.txt

namespace {

struct FactForm {
  std::string fact, question, prefix;
  std::vector<std::string> answers;
};

struct DrawnFact {
  FactForm form;                    // with its slots filled
  std::vector<std::string> values;  // the values of its slots
};

class FactMaker {
 public:
  FactMaker();
  size_t n_forms() const { return forms_.size(); }
  DrawnFact draw(size_t form, Random& random) const;

 private:
  using Slots = std::map<std::string, std::string>;

  std::string item(const std::string& slot, Random& random) const;
  /// `drawn`: values of slots, used if there and added if not; if null, every slot is drawn anew.
  std::string fill(const std::string& pattern, Random& random, Slots* drawn) const;

  std::vector<FactForm> forms_;
  std::map<std::string, std::vector<std::string>> words_;  // by slot
};

FactMaker::FactMaker() {
  const nlohmann::json data = nlohmann::json::parse(kMakeQaFacts);
  data.at("words").get_to(words_);
  for (const nlohmann::json& form : data.at("forms")) {
    forms_.push_back({form.at("fact"), form.at("question"), form.at("prefix"), form.at("answers")});
  }
}

std::string FactMaker::item(const std::string& slot, Random& random) const {
  const size_t end = slot.find_last_not_of("0123456789") + 1;
  const std::vector<std::string>& items = words_.at(slot.substr(0, end));
  return fill(items[random.below(items.size())], random, nullptr);
}

std::string FactMaker::fill(const std::string& pattern, Random& random, Slots* drawn) const {
  std::string text;
  for (size_t at = 0; at < pattern.size();) {
    const size_t open = pattern.find('{', at);
    text += pattern.substr(at, open - at);
    if (open == std::string::npos) break;
    const size_t close = pattern.find('}', open);
    const std::string slot = pattern.substr(open + 1, close - open - 1);
    if (drawn == nullptr) {
      text += item(slot, random);
    } else {
      if (!drawn->contains(slot)) drawn->emplace(slot, item(slot, random));
      text += drawn->at(slot);
    }
    at = close + 1;
  }
  return text;
}

DrawnFact FactMaker::draw(size_t form, Random& random) const {
  Slots slots;
  DrawnFact drawn;
  drawn.form = forms_[form];
  for (std::string* part : {&drawn.form.fact, &drawn.form.question, &drawn.form.prefix}) {
    *part = fill(*part, random, &slots);
  }
  for (std::string& answer : drawn.form.answers) answer = fill(answer, random, &slots);
  for (const auto& [slot, value] : slots) drawn.values.push_back(value);
  return drawn;
}

// Draws `n` facts about different things that the text does not mention.
std::vector<DrawnFact> draw_facts(const std::string& text, int64_t n, Random& random) {
  constexpr int kMostDraws = 50;
  const FactMaker maker;
  const WordIndex index(text);
  std::vector<DrawnFact> facts;
  std::vector<size_t> order;  // of forms, each used once before any is used again
  std::set<std::string> used;
  for (int64_t i = 0; i < n; ++i) {
    if (order.empty()) {
      for (size_t form = 0; form < maker.n_forms(); ++form) order.push_back(form);
    }
    const size_t at = random.below(order.size());
    const size_t form = order[at];
    order.erase(order.begin() + static_cast<int64_t>(at));
    for (int draw = 0; draw < kMostDraws; ++draw) {
      DrawnFact fact = maker.draw(form, random);
      const std::set<std::string> different(fact.values.begin(), fact.values.end());
      const bool is_new = std::none_of(fact.values.begin(), fact.values.end(),
                                       [&](const auto& value) { return used.contains(value); });
      if (!is_new || different.size() < fact.values.size() ||
          index.count(fact.form.answers.front()) > 0) {
        continue;
      }
      used.insert(fact.values.begin(), fact.values.end());
      facts.push_back(std::move(fact));
      break;
    }
  }
  return facts;
}

// Draws up to `n` sentences of a text after which a fact may stand, spread over the text and in its
// order.
std::vector<Sentence> draw_places(const SourceText& source, size_t n, Random& random) {
  std::vector<Sentence> free = split_sentences(source.text, source.is_code), places;
  std::erase_if(free, [](const Sentence& s) { return s.after == SentenceEnd::inside; });
  for (size_t i = 0; i < n && !free.empty(); ++i) {
    const size_t wanted = (i * 1000 + random.below(1000)) * source.text.size() / (n * 1000);
    const auto nearest = std::min_element(free.begin(), free.end(), [&](auto& a, auto& b) {
      const auto distance = [&](size_t at) { return at > wanted ? at - wanted : wanted - at; };
      return distance(a.end) < distance(b.end);
    });
    places.push_back(*nearest);
    free.erase(nearest);
  }
  std::sort(places.begin(), places.end(),
            [](const Sentence& a, const Sentence& b) { return a.begin < b.begin; });
  return places;
}

const char* space_before_fact(SentenceEnd after) {
  if (after == SentenceEnd::paragraph) return "\n\n";
  return after == SentenceEnd::line ? "\n" : " ";
}

}  // namespace

MadeContext make_facts(const SourceText& source, int64_t n, Random& random) {
  const std::vector<DrawnFact> facts = draw_facts(source.text, n, random);
  const std::vector<Sentence> places = draw_places(source, facts.size(), random);
  MadeContext made;
  size_t copied = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const FactForm& form = facts[i].form;
    made.changed += source.text.substr(copied, places[i].end - copied);
    made.changed += space_before_fact(places[i].after);
    const size_t at = made.changed.size() + form.fact.find(form.answers.front());
    made.changed += form.fact;
    copied = places[i].end;
    made.questions.push_back({at, form.question, form.prefix, form.answers});
  }
  made.changed += source.text.substr(copied);
  // Facts may contain each other's answers.
  const WordIndex index(made.changed);
  std::erase_if(made.questions,
                [&](const MadeQuestion& question) { return !is_answerable(question, index); });
  return made;
}

}  // namespace snapkv::eval
