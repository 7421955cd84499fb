// The end of a flow has its icon on the right.
export default {
    align: "right",
};
