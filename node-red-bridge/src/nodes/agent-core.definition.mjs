// The dialog of an agent has tabs.
export default {
    oneditprepare: function () {
        RedflowEditor.openAgent(this);
        RedflowEditor.prepareFields(this);
    },
    oneditsave: function () {
        RedflowEditor.saveNumbers(this, ["maxIterations", "timeout"]);
        RedflowEditor.saveAgent(this);
        RedflowEditor.keepUntouched(this);
    },
    oneditcancel: function () {
        RedflowEditor.closeAgent(this);
    },
    oneditdelete: function () {
        RedflowEditor.closeAgent(this);
    },
};
