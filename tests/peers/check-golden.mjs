// Checks the golden request bodies against the types of the providers' own clients.
//
// Writes each body as a literal into a TypeScript file, so that the compiler also rejects unknown keys. Also checks
// invalid bodies, which the compiler must reject: otherwise the check proves nothing.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
// Files with one body; and whole conversations, which are lists of bodies.
const golden = join(here, '../../runtime/models/golden');
const conversations = join(here, '../live/golden');
const out = join(here, 'dist');

const IMPORTS = `
import type { ChatCompletionCreateParams, ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { ResponseCreateParams } from 'openai/resources/responses/responses';
import type { MessageCreateParams } from '@anthropic-ai/sdk/resources/messages';
import type { ChatRequest, Tool } from 'ollama';
import type { Content, GenerationConfig, Tool as GoogleTool, ToolConfig } from '@google/genai';

// The dated API of Azure has the deployment in its path instead.
type AzureDated = Omit<ChatCompletionCreateParams, 'model'>;
// Compatible servers expect this property back, which OpenAI's own types lack.
type Reasoned = ChatCompletionMessageParam & { reasoning_content?: string };
type OpenaiCompatible = Omit<ChatCompletionCreateParams, 'messages'> & { messages: Reasoned[] };
// The older version of Anthropic's API accepts these; the client has only the newer version.
type Sampling = { temperature?: number; top_p?: number; top_k?: number };
// Ollama accepts any JSON Schema; the types of its client have only a few keys.
type AnySchema = Omit<Tool, 'function'> & { function: Omit<Tool['function'], 'parameters'> & { parameters?: object } };
type OllamaRequest = Omit<ChatRequest, 'tools'> & { tools?: AnySchema[] };
// Google's client takes its own form and writes this body from it. Its enums are texts in JSON.
type InJson<T> = T extends string ? \`\${T}\`
  : T extends (infer U)[] ? InJson<U>[]
  : T extends object ? { [K in keyof T]: InJson<T[K]> } : T;
type GeminiRequest = InJson<{
  systemInstruction?: Content;
  contents: Content[];
  tools?: GoogleTool[];
  toolConfig?: ToolConfig;
  generationConfig?: GenerationConfig;
}>;
`;

// The first matching prefix gives the type.
const TYPES = [
  ['openai-chat-azure-dated', 'AzureDated'],
  ['openai-chat-reasoning', 'OpenaiCompatible'],
  ['openai-chat', 'ChatCompletionCreateParams'],
  ['azure-dated', 'AzureDated'],
  ['azure-', 'ChatCompletionCreateParams'],
  ['openai-responses', 'ResponseCreateParams'],
  ['anthropic-sampling-2023-06-01', 'MessageCreateParams & Sampling'],
  ['anthropic-2023-06-01', 'MessageCreateParams & Sampling'],
  ['anthropic-', 'MessageCreateParams'],
  ['ollama', 'OllamaRequest'],
  ['gemini', 'GeminiRequest'],
];

const user = { role: 'user', content: 'hi' };
const WRONG = {
  'openai-chat-unknown-key': { model: 'm', messages: [user], max_output_tokens: 5 },
  'openai-chat-no-model': { messages: [user] },
  'openai-chat-role': { model: 'm', messages: [{ role: 'robot', content: 'hi' }] },
  'openai-chat-format': { model: 'm', messages: [user], response_format: { type: 'json_schema', schema: {} } },
  'openai-chat-azure-dated-key': { messages: [user], top_k: 1 },
  'openai-chat-reasoning-role': { model: 'm', messages: [{ role: 'robot', reasoning_content: 'hm' }] },
  'openai-responses-seed': { model: 'm', input: 'hi', seed: 7 },
  'openai-responses-item': { model: 'm', input: [{ type: 'function_call_output', output: '4' }] },
  'anthropic-no-max-tokens': { model: 'm', messages: [user] },
  'anthropic-tool-role': { model: 'm', max_tokens: 1, messages: [{ role: 'tool', content: '4' }] },
  'anthropic-unknown-key': { model: 'm', max_tokens: 1, messages: [user], response_format: { type: 'text' } },
  'anthropic-sampling': { model: 'm', max_tokens: 1, messages: [user], temperature: 1 },
  'anthropic-sampling-2023-06-01-key': { model: 'm', max_tokens: 1, messages: [user], seed: 1 },
  'ollama-tool': { model: 'm', messages: [user], tools: [{ type: 'function', name: 'a', parameters: {} }] },
  'ollama-unknown-key': { model: 'm', messages: [user], max_tokens: 1 },
  'anthropic-2023-06-01-list': [{ model: 'm', max_tokens: 1, messages: [user] }, { model: 'm', messages: [user] }],
  'gemini-no-contents': { generationConfig: {} },
  'gemini-unknown-key': { contents: [], stream: true },
  'gemini-text': { contents: 'hi' },
  'gemini-mode': { contents: [], toolConfig: { functionCallingConfig: { mode: 'REQUIRED' } } },
  'gemini-part': { contents: [{ role: 'user', parts: [{ image: 'AAAA' }] }] },
  'gemini-call': { contents: [{ role: 'model', parts: [{ functionCall: { name: 'a', args: '{}' } }] }] },
  'gemini-result': { contents: [{ role: 'user', parts: [{ functionResponse: { name: 'a', response: 4 } }] }] },
  'gemini-level': { contents: [], generationConfig: { thinkingConfig: { thinkingLevel: 'low' } } },
  'gemini-settings': { contents: [], generationConfig: { max_tokens: 1 } },
  'openai-chat-picture': { model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: 'data:' }] }] },
  'openai-responses-picture': { model: 'm', input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:' }] }] },
  'anthropic-picture': { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: '' } }] }] },
  'ollama-picture': { model: 'm', messages: [{ role: 'user', content: '', images: 'iVBO' }] },
  'anthropic-cache': { model: 'm', max_tokens: 1, messages: [user], cache_control: { type: 'ephemeral', ttl: '2h' } },
  'anthropic-strict': { model: 'm', max_tokens: 1, messages: [user], tools: [{ name: 't', input_schema: { type: 'object' }, strict: 'yes' }] },
  'openai-chat-cache': { model: 'm', messages: [user], prompt_cache_retention: '1h' },
  'openai-chat-strict': { model: 'm', messages: [user], tools: [{ type: 'function', strict: true, function: { name: 't' } }] },
  'openai-responses-cache': { model: 'm', input: 'hi', prompt_cache_key: 7 },
  'ollama-options': { model: 'm', messages: [user], options: { max_tokens: 1 } },
};

/** The TypeScript file of a body. Errors name the file and so the body. */
function source(name, json) {
  const type = TYPES.find(([prefix]) => name.startsWith(prefix));
  if (!type) {
    throw new Error(`${name}: there is no type for a golden body with this name`);
  }
  const list = json.startsWith('[') ? '[]' : '';
  return `${IMPORTS}\nexport const body: (${type[1]})${list} = ${json};\n`;
}

/** Compiles the bodies in their own folder. Returns the errors of each by its name. */
function compile(folder, bodies) {
  const path = join(out, folder);
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  const names = Object.keys(bodies);
  for (const name of names) {
    writeFileSync(join(path, `${name}.ts`), source(name, bodies[name]));
  }
  const options = { strict: true, noEmit: true, skipLibCheck: true, target: 'es2022', lib: ['es2023', 'dom'] };
  const compilerOptions = { ...options, module: 'nodenext', moduleResolution: 'nodenext', types: [] };
  writeFileSync(join(path, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: names.map((name) => `${name}.ts`) }));
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  const run = spawnSync(process.execPath, [tsc, '--pretty', 'false', '-p', path], { cwd: path, encoding: 'utf8' });
  if (run.error) {
    throw run.error;
  }
  const found = new Map(names.map((name) => [name, []]));
  const rest = [];
  let last = rest;
  for (const line of `${run.stdout}${run.stderr}`.split('\n').filter(Boolean)) {
    const named = /^([^ (]+)\.ts\(/.exec(line);
    if (named) {
      last = found.get(named[1]) ?? rest;
    }
    last.push(line);
  }
  if (rest.length > 0) {
    throw new Error(`the compiler itself failed:\n${rest.join('\n')}`);
  }
  return found;
}

const texts = (entries) => Object.fromEntries(entries.map(([name, body]) => [name, JSON.stringify(body)]));
const passed = [...compile('wrong', texts(Object.entries(WRONG)))].filter(([, errors]) => errors.length === 0);
for (const [name] of passed) {
  console.error(`the check is broken: it accepts the invalid body ${name}`);
}

const jsons = (folder) => readdirSync(folder).filter((file) => file.endsWith('.json')).sort();
const read = (folder) => Object.fromEntries(jsons(folder).map((file) => [file.slice(0, -5), readFileSync(join(folder, file), 'utf8').trim()]));
const missing = [golden, conversations].flatMap((folder) => ['openai-chat', 'openai-responses', 'anthropic-', 'ollama', 'gemini']
  .filter((prefix) => !jsons(folder).some((file) => file.startsWith(prefix))));
for (const prefix of missing) {
  console.error(`there is no golden body ${prefix}*.json`);
}
const checked = [...compile('golden', read(golden)), ...compile('conversations', read(conversations))];
const rejected = checked.filter(([, errors]) => errors.length > 0);
for (const [name, errors] of rejected) {
  console.error(`${name}.json:\n  ${errors.join('\n  ')}`);
}

console.log(`${checked.length} golden files, ${rejected.length} rejected; ${Object.keys(WRONG).length} invalid bodies, ${passed.length} accepted`);
process.exitCode = passed.length + missing.length + rejected.length > 0 ? 1 : 0;
