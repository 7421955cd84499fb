// The parameters of a tool: a JSON Schema of an object as rows of a table, and back. Keeps every keyword that the table does not
// show. Pure: draws nothing.

import { isObject } from "./rules.mjs";

/** The types of a parameter in the table. */
export const TYPES = ["string", "number", "integer", "boolean"] as const;

/** The most rows of a table. */
export const MAX_PARAMETERS = 100;

/** A row of the table. */
export interface Parameter {
  name: string;
  type: string;
  description: string;
  required: boolean;
  /** The other keywords of the property, such as `enum`. */
  rest: Record<string, unknown>;
}

/** Keywords by which a schema describes properties in another way than a list. */
const BEYOND_TABLE = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "dependentRequired"];

/** The parameters of a schema; undefined if the table cannot show them. A missing schema has none. */
export function parametersOf(schema: unknown): Parameter[] | undefined {
  if (schema === undefined || schema === null || schema === "") {
    return [];
  }
  if (!isObject(schema) || (schema["type"] ?? "object") !== "object" || BEYOND_TABLE.some((keyword) => keyword in schema)) {
    return undefined;
  }
  const { properties = {}, required = [] } = schema;
  if (!isObject(properties) || !Array.isArray(required)) {
    return undefined;
  }
  const names = Object.keys(properties);
  const isListed = required.every((name) => typeof name === "string" && Object.hasOwn(properties, name));
  const rows = Object.entries(properties).map(([name, property]) => parameterOf(name, property, required.includes(name)));
  const parameters = rows.filter((row) => row !== undefined);
  return isListed && names.length <= MAX_PARAMETERS && parameters.length === names.length ? parameters : undefined;
}

function parameterOf(name: string, property: unknown, required: boolean): Parameter | undefined {
  if (!isObject(property) || BEYOND_TABLE.some((keyword) => keyword in property)) {
    return undefined;
  }
  const { type, description = "", ...rest } = property;
  const known = TYPES.find((one) => one === type);
  return known !== undefined && typeof description === "string" ? { name, type: known, description, required, rest } : undefined;
}

/** The schema with these parameters. Other keywords of `schema` stay. Of two parameters with one name, the first counts. */
export function schemaWith(schema: unknown, parameters: Parameter[]): Record<string, unknown> {
  const base = isObject(schema) ? schema : {};
  const named = parameters.filter(({ name }, at) => name !== "" && parameters.findIndex((other) => other.name === name) === at);
  const properties = Object.fromEntries(
    named.map(({ name, type, description, rest }) => [name, { type, ...(description === "" ? {} : { description }), ...rest }]),
  );
  const { required: _, ...kept }: Record<string, unknown> = { type: "object", ...base, properties };
  const required = named.filter((parameter) => parameter.required).map(({ name }) => name);
  return required.length > 0 ? { ...kept, required } : kept;
}

/** Whether every parameter has a name of its own. */
export function haveNames(parameters: Parameter[]): boolean {
  return parameters.every(({ name }) => name !== "") && new Set(parameters.map(({ name }) => name)).size === parameters.length;
}
