// The English texts of the page Memory.

export const MEMORY = {
  "forget.again": "The name again",
  "forget.done": "Removed. Entries: {entries}, conversations: {conversations}, runs: {runs}.",
  "forget.problems": "Some data is left. Solve these problems, then forget it again:",
  "forget.runs": "Also the runs, with their journals and chats",
  "forget.what": "Removes all entries and conversations of a user or a session, in all memories. This cannot be undone.",
  "forget.whose": "Whose data",
  "memory.all": "All memories",
  "memory.approve": "Approve",
  "memory.empty": "There are no long memories yet.",
  "memory.empty.how": "Wire a long-memory node to an agent in Node-RED and deploy. What it keeps of its runs appears here.",
  "memory.entries": "Entries",
  "memory.none": "No entry matches the filter.",
  "memory.nothing.how": "Only entries that an agent can recall are searched. Use other words, or compare in another way.",
  "memory.reject": "Reject",
  "memory.review": "To review",
  "memory.review.none": "No entry waits for a review.",
  "memory.review.what": "These texts of tools or documents look like prompt injection. No agent gets one before a person approves it.",
  "memory.unknown": "There is no memory with this name.",
} as const;
