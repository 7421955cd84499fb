// The timeline of a run and its forms, for the console and for Node-RED's editor. The editor's bundle contains this folder and
// nothing else of the console.

export { CancelForm, type CancelFormProps } from "./cancel.js";
export { ConfidenceChart } from "./chart.js";
export type { ShownProblem, TimelineEnvironment, WordValues, Words } from "./environment.js";
export { EnvironmentProvider } from "./environment.js";
export { type Formats, formatsIn } from "./formats.js";
export { type MountedTimeline, mountCancelForm, mountResolveForm, mountTimeline } from "./mount.js";
export { type Answer, ResolveForm, type ResolveFormProps, resultOf } from "./resolve.js";
export { costText } from "./cost.js";
export { EndLines, usedText } from "./sentences.js";
export type { LiveText } from "./steps.js";
export type { IterationTexts, ReadTexts } from "./texts.js";
export { type NarrowLayout, Timeline, type TimelineProps } from "./timeline.js";
export type { WideLayout } from "./waterfall.js";
export { type Selection } from "./waterfall-rows.js";
