// The dialog of a runtime shows either the fields of a started sidecar or those of a running one, and the log of the first.
export default {
    label: function () {
        return RedflowEditor.label([this.name, this.mode === "remote" ? this.url : ""], "nodes.palette.redflow-runtime");
    },
    oneditprepare: function () {
        RedflowEditor.openRuntime(this);
        RedflowEditor.prepareFields(this, "node-config-input");
    },
};
