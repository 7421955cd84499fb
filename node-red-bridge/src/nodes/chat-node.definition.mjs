// The button opens the window of the chat.
export default {
    button: {
        enabled: function () {
            return !this.changed;
        },
        onclick: function () {
            RedflowEditor.openChat(this);
        },
    },
};
