// The dialog lists the tools of the connected sidecars.
export default {
    oneditprepare: function () {
        RedflowEditor.prepareJson(this, "ids");
        RedflowEditor.prepareFields(this);
        RedflowEditor.listRegistry();
    },
};
