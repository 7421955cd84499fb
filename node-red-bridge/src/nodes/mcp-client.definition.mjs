// The dialog offers the MCP servers of the connected sidecars, and the tools of the chosen one.
export default {
    oneditprepare: function () {
        RedflowEditor.prepareJson(this, "effects");
        RedflowEditor.prepareFields(this);
        RedflowEditor.prepareMcp();
    },
};
