// dagre comes as one file with all of graphlib. The lists of what its parts export are calls, which keep every part alive. As
// plain values they do not, and the bundler leaves out what the console does not use.

/** The lists of exports, such as `var H={};Se(H,{preorder:()=>nt})`. */
const LISTS = /var ([\w$]+)=\{\};[\w$]+\(\1,\{((?:\w+:\(\)=>[\w$]+,?)+)\}\)/g;

/** The source of dagre without calls that have no effect but to list exports. Fails for a file of another form. */
export function looseParts(source) {
  const lists = new Map();
  const plain = source.replace(LISTS, (_, list, entries) => {
    lists.set(list, new Map(entries.split(",").map((entry) => entry.split(":()=>"))));
    return `var ${list}={${entries.replace(/(\w+):\(\)=>([\w$]+)/g, "get $1(){return $2}")}}`;
  });
  // Parts that take some functions out of a list get the functions themselves.
  const loose = plain.replace(/var\{([\w$:,]+)\}=([\w$]+)/g, (all, names, list) => {
    const parts = names.split(",").map((name) => name.split(":"));
    return lists.has(list) ? `var ${parts.map(([name, local = name]) => `${local}=${lists.get(list).get(name)}`).join(",")}` : all;
  });
  if (lists.size === 0 || loose === plain) {
    throw new Error("dagre has another form than scripts/dagre.mjs expects. Change it, or load dagre whole.");
  }
  return loose;
}
