/**
 * The types of Redflow Runtime, as its contract declares them.
 *
 * @packageDocumentation
 */
export * from "./types.js";
