// SPDX-License-Identifier: MIT
// Chat templates under the names that llama.cpp gives them, for models whose file has none. They
// write what llama.cpp writes without --jinja (tests/text/chat_template_test.cpp compares them),
// and leave BOS to the tokenizer as llama.cpp does.
#include "text/builtin_templates.h"

#include <algorithm>
#include <iterator>

namespace snapkv {
namespace {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view source;
};

// In alphabetical order. `m` is a message. In formats without a place for a system message, it goes
// into the user's turn that follows.
constexpr BuiltinTemplate kTemplates[] = {
    {"bailing",
     "{%- set names = {'system': 'SYSTEM', 'user': 'HUMAN', 'assistant': 'ASSISTANT'} -%}"
     "{%- for m in messages -%}{{ '<role>' + names[m.role] + '</role>' + m.content }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<role>ASSISTANT</role>{%- endif -%}"},
    {"chatglm3",
     "[gMASK]sop{%- for m in messages -%}{{ '<|' + m.role + '|>\\n ' + m.content }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"},
    {"chatglm4",
     "[gMASK]<sop>{%- for m in messages -%}{{ '<|' + m.role + '|>\\n' + m.content }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<|assistant|>\\n' }}{%- endif -%}"},
    {"chatml",
     "{%- for m in messages -%}"
     "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"},
    {"command-r",
     "{%- set names = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'} -%}"
     "{%- for m in messages -%}{{ '<|START_OF_TURN_TOKEN|><|' + names[m.role] + '_TOKEN|>' "
     "+ m.content | trim + '<|END_OF_TURN_TOKEN|>' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{%- endif -%}"},
    {"deepseek",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ m.content }}"
     "{%- elif m.role == 'user' -%}{{ '### Instruction:\\n' + m.content + '\\n' }}"
     "{%- else -%}{{ '### Response:\\n' + m.content + '\\n<|EOT|>\\n' }}{%- endif -%}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '### Response:\\n' }}{%- endif -%}"},
    {"deepseek2",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ m.content + '\\n\\n' }}"
     "{%- elif m.role == 'user' -%}{{ 'User: ' + m.content + '\\n\\n' }}"
     "{%- else -%}{{ 'Assistant: ' + m.content + '<｜end▁of▁sentence｜>' }}{%- endif -%}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}Assistant:{%- endif -%}"},
    {"deepseek3",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ m.content + '\\n\\n' }}"
     "{%- elif m.role == 'user' -%}{{ '<｜User｜>' + m.content }}"
     "{%- else -%}{{ '<｜Assistant｜>' + m.content + '<｜end▁of▁sentence｜>' }}{%- endif -%}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}<｜Assistant｜>{%- endif -%}"},
    {"exaone3",
     "{%- for m in messages -%}"
     "{{ '[|' + m.role + '|]' + m.content | trim "
     "+ ('\\n' if m.role == 'user' else '[|endofturn|]\\n') }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}[|assistant|]{%- endif -%}"},
    {"falcon3",
     "{%- for m in messages -%}{{ '<|' + m.role + '|>\\n' + m.content + '\\n' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<|assistant|>\\n' }}{%- endif -%}"},
    {"gemma",
     "{%- set ns = namespace(system='') -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{%- set ns.system = m.content | trim + '\\n\\n' -%}"
     "{%- elif m.role == 'user' -%}{{ '<start_of_turn>user\\n' + ns.system + m.content | trim "
     "+ '<end_of_turn>\\n' }}{%- set ns.system = '' -%}"
     "{%- else -%}{{ '<start_of_turn>model\\n' + m.content | trim + '<end_of_turn>\\n' }}"
     "{%- endif -%}{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}"},
    {"glmedge",
     "{%- for m in messages -%}{{ '<|' + m.role + '|>\\n' + m.content }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"},
    {"gpt-oss",
     "{%- for m in messages -%}{{ '<|start|>' + m.role + '<|message|>' + m.content "
     "+ ('<|return|>' if m.role == 'assistant' else '<|end|>') }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"},
    {"granite",
     "{%- for m in messages -%}{{ '<|start_of_role|>' + m.role + '<|end_of_role|>' + m.content "
     "+ '<|end_of_text|>\\n' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|start_of_role|>assistant<|end_of_role|>{%- endif -%}"},
    {"grok-2",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ 'System: ' + m.content | trim }}"
     "{%- elif m.role == 'user' -%}{{ 'Human: ' + m.content | trim }}"
     "{%- else -%}{{ 'Assistant: ' + m.content }}{%- endif -%}"
     "{{ '<|separator|>\\n\\n' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}Assistant:{%- endif -%}"},
    {"hunyuan-moe",
     "{%- set ends = {'system': '<|extra_4|>', 'user': '<|extra_0|>', 'assistant': '<|eos|>'} -%}"
     "{%- for m in messages -%}"
     "{{ ('' if m.role == 'assistant' else '<|startoftext|>') + m.content + ends[m.role] }}"
     "{%- endfor -%}"},
    {"kimi-k2",
     "{%- for m in messages -%}{{ '<|im_' + m.role + '|>' + m.role + '<|im_middle|>' + m.content "
     "+ '<|im_end|>' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|im_assistant|>assistant<|im_middle|>{%- endif -%}"},
    {"llama2",
     "{%- set ns = namespace(open=false) -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'assistant' -%}{{ m.content + '</s>' }}{%- set ns.open = false -%}"
     "{%- else -%}{{ '' if ns.open else '[INST] ' }}{%- set ns.open = true -%}"
     "{{ m.content + ('\\n' if m.role == 'system' else ' [/INST]') }}{%- endif -%}"
     "{%- endfor -%}"},
    {"llama2-sys",
     "{%- set ns = namespace(open=false) -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'assistant' -%}{{ m.content + '</s>' }}{%- set ns.open = false -%}"
     "{%- else -%}{{ '' if ns.open else '[INST] ' }}{%- set ns.open = true -%}"
     "{%- if m.role == 'system' -%}{{ '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' }}"
     "{%- else -%}{{ m.content + ' [/INST]' }}{%- endif -%}{%- endif -%}"
     "{%- endfor -%}"},
    {"llama2-sys-bos",
     "{%- set ns = namespace(open=false) -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'assistant' -%}{{ m.content + '</s>' }}{%- set ns.open = false -%}"
     "{%- else -%}{{ '' if ns.open else '[INST] ' if loop.first else '<s>[INST] ' }}"
     "{%- set ns.open = true -%}"
     "{%- if m.role == 'system' -%}{{ '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' }}"
     "{%- else -%}{{ m.content + ' [/INST]' }}{%- endif -%}{%- endif -%}"
     "{%- endfor -%}"},
    {"llama2-sys-strip",
     "{%- set ns = namespace(open=false) -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'assistant' -%}{{ m.content | trim + '</s>' }}{%- set ns.open = false -%}"
     "{%- else -%}{{ '' if ns.open else '[INST] ' }}{%- set ns.open = true -%}"
     "{%- if m.role == 'system' -%}{{ '<<SYS>>\\n' + m.content | trim + '\\n<</SYS>>\\n\\n' }}"
     "{%- else -%}{{ m.content | trim + ' [/INST]' }}{%- endif -%}{%- endif -%}"
     "{%- endfor -%}"},
    {"llama3",
     "{%- for m in messages -%}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' "
     "+ m.content | trim + '<|eot_id|>' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif -%}"},
    {"llama4",
     "{%- for m in messages -%}{{ '<|header_start|>' + m.role + '<|header_end|>\\n\\n' "
     "+ m.content | trim + '<|eot|>' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}"
     "{{ '<|header_start|>assistant<|header_end|>\\n\\n' }}{%- endif -%}"},
    {"megrez",
     "{%- for m in messages -%}{{ '<|role_start|>' + m.role + '<|role_end|>' + m.content "
     "+ '<|turn_end|>' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|role_start|>assistant<|role_end|>{%- endif -%}"},
    {"minicpm",
     "{%- for m in messages -%}"
     "{{ '<用户>' + m.content | trim + '<AI>' if m.role == 'user' else m.content | trim }}"
     "{%- endfor -%}"},
    {"mistral-v1",
     "{%- set ns = namespace(open=false) -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'assistant' -%}{{ ' ' + m.content + '</s>' }}{%- set ns.open = false -%}"
     "{%- else -%}{{ '' if ns.open else ' [INST] ' }}{%- set ns.open = true -%}"
     "{{ m.content + ('\\n\\n' if m.role == 'system' else ' [/INST]') }}{%- endif -%}"
     "{%- endfor -%}"},
    {"mistral-v3",
     "{%- set ns = namespace(open=false) -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'assistant' -%}{{ ' ' + m.content | trim + '</s>' }}"
     "{%- set ns.open = false -%}"
     "{%- else -%}{{ '' if ns.open else '[INST] ' }}{%- set ns.open = true -%}"
     "{{ m.content + ('\\n\\n' if m.role == 'system' else '[/INST]') }}{%- endif -%}"
     "{%- endfor -%}"},
    {"mistral-v3-tekken",
     "{%- set ns = namespace(open=false) -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'assistant' -%}{{ m.content + '</s>' }}{%- set ns.open = false -%}"
     "{%- else -%}{{ '' if ns.open else '[INST]' }}{%- set ns.open = true -%}"
     "{{ m.content + ('\\n\\n' if m.role == 'system' else '[/INST]') }}{%- endif -%}"
     "{%- endfor -%}"},
    {"mistral-v7",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ '[SYSTEM_PROMPT] ' + m.content + '[/SYSTEM_PROMPT]' }}"
     "{%- elif m.role == 'user' -%}{{ '[INST] ' + m.content + '[/INST]' }}"
     "{%- else -%}{{ ' ' + m.content + '</s>' }}{%- endif -%}{%- endfor -%}"},
    {"mistral-v7-tekken",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ '[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]' }}"
     "{%- elif m.role == 'user' -%}{{ '[INST]' + m.content + '[/INST]' }}"
     "{%- else -%}{{ m.content + '</s>' }}{%- endif -%}{%- endfor -%}"},
    {"monarch",
     "{%- for m in messages -%}"
     "{{ ('' if loop.first else '<s>') + m.role + '\\n' + m.content + '</s>\\n' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<s>assistant\\n' }}{%- endif -%}"},
    {"openchat",
     "{%- set names = {'user': 'GPT4 Correct User: ', 'assistant': 'GPT4 Correct Assistant: '} -%}"
     "{%- for m in messages -%}{{ names.get(m.role, '') + m.content + '<|end_of_turn|>' }}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}GPT4 Correct Assistant:{%- endif -%}"},
    {"orion",
     "{%- set ns = namespace(system='') -%}"
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{%- set ns.system = m.content + '\\n\\n' -%}"
     "{%- elif m.role == 'user' -%}"
     "{{ 'Human: ' + ns.system + m.content + '\\n\\nAssistant: </s>' }}{%- set ns.system = '' -%}"
     "{%- else -%}{{ m.content + '</s>' }}{%- endif -%}{%- endfor -%}"},
    {"phi3",
     "{%- for m in messages -%}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<|assistant|>\\n' }}{%- endif -%}"},
    {"phi4",
     "{%- for m in messages -%}"
     "{{ '<|im_start|>' + m.role + '<|im_sep|>' + m.content + '<|im_end|>' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}<|im_start|>assistant<|im_sep|>{%- endif -%}"},
    {"rwkv-world",
     "{%- for m in messages -%}{{ m.role | capitalize + ': ' + m.content | trim + '\\n\\n' }}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}Assistant:{%- endif -%}"},
    {"seed_oss",
     "{%- for m in messages -%}{{ '<seed:bos>' + m.role + '\\n' "
     "+ (m.content | trim if m.role == 'assistant' else m.content) + '<seed:eos>' }}{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<seed:bos>assistant\\n' }}{%- endif -%}"},
    {"smolvlm",
     "<|im_start|>{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ m.content + '\\n\\n' }}"
     "{%- elif m.role == 'user' -%}{{ 'User: ' + m.content + '<end_of_utterance>\\n' }}"
     "{%- else -%}{{ 'Assistant: ' + m.content + '<end_of_utterance>\\n' }}{%- endif -%}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}Assistant:{%- endif -%}"},
    {"vicuna",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ m.content + '\\n\\n' }}"
     "{%- elif m.role == 'user' -%}{{ 'USER: ' + m.content + '\\n' }}"
     "{%- else -%}{{ 'ASSISTANT: ' + m.content + '</s>\\n' }}{%- endif -%}{%- endfor -%}"
     "{%- if add_generation_prompt -%}ASSISTANT:{%- endif -%}"},
    {"vicuna-orca",
     "{%- for m in messages -%}"
     "{%- if m.role == 'system' -%}{{ 'SYSTEM: ' + m.content + '\\n' }}"
     "{%- elif m.role == 'user' -%}{{ 'USER: ' + m.content + '\\n' }}"
     "{%- else -%}{{ 'ASSISTANT: ' + m.content + '</s>\\n' }}{%- endif -%}{%- endfor -%}"
     "{%- if add_generation_prompt -%}ASSISTANT:{%- endif -%}"},
    {"zephyr",
     "{%- for m in messages -%}{{ '<|' + m.role + '|>\\n' + m.content + '<|endoftext|>\\n' }}"
     "{%- endfor -%}"
     "{%- if add_generation_prompt -%}{{ '<|assistant|>\\n' }}{%- endif -%}"},
};

}  // namespace

std::optional<std::string_view> find_builtin_template(std::string_view name) {
  const auto* at = std::find_if(std::begin(kTemplates), std::end(kTemplates),
                                [&](const BuiltinTemplate& t) { return t.name == name; });
  if (at == std::end(kTemplates)) return std::nullopt;
  return at->source;
}

std::vector<std::string> builtin_template_names() {
  std::vector<std::string> names;
  for (const BuiltinTemplate& each : kTemplates) names.emplace_back(each.name);
  return names;
}

}  // namespace snapkv
