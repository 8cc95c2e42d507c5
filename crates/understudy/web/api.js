/* The script a host page loads: gives it `DocsAPI.DocEditor`, like the real Document Server's.
 *
 * Guarantees: a page written for ONLYOFFICE works unchanged: the same constructor, events and methods; methods
 * we have no use for exist and do nothing. Works under a strict content security policy: no inline style or
 * script, and messages only between this page and the editor's own frame.
 *
 * Does not know the protocol; the frame does (editor.js).
 */
(function () {
  'use strict';

  var VERSION = '9.3.0';
  var script = document.currentScript;
  var base = (script && script.src ? script.src : '').split('/web-apps/')[0];
  var count = 0;

  function DocEditor(placeholderId, config) {
    if (!(this instanceof DocEditor)) return new DocEditor(placeholderId, config);
    var self = this;
    config = config || {};
    var events = config.events || {};
    var id = 'understudy-' + ++count;
    var target = document.getElementById(placeholderId);
    var frame = createFrame();
    var destroyed = false;

    if (target && target.parentNode) {
      target.parentNode.replaceChild(frame, target);
    }
    window.addEventListener('message', onMessage);

    function createFrame() {
      var frame = document.createElement('iframe');
      var query = '?frame=' + encodeURIComponent(id) + '&parent=' + encodeURIComponent(window.location.origin);
      frame.id = placeholderId;
      frame.name = 'frameEditor';
      frame.title = 'Document editor';
      frame.src = base + '/web-apps/apps/understudy/editor.html' + query;
      frame.allow = 'autoplay; camera; microphone; display-capture; clipboard-write; clipboard-read;';
      frame.setAttribute('allowfullscreen', '');
      frame.width = config.width || '100%';
      frame.height = config.height || '100%';
      frame.style.border = '0';
      return frame;
    }

    function onMessage(message) {
      var data = message.data;
      if (message.source !== frame.contentWindow || !data || data.frame !== id) return;
      if (data.event === 'onFrameReady') {
        send('init', { config: plain(config), has: Object.keys(events) });
        return;
      }
      if (data.event === 'onRequestClose' && typeof events.onRequestClose !== 'function') return;
      var handler = events[data.event];
      if (typeof handler === 'function') handler.call(self, { target: self, data: data.data });
    }

    function send(command, data) {
      if (destroyed || !frame.contentWindow) return;
      frame.contentWindow.postMessage({ frame: id, command: command, data: data }, base || '*');
    }

    /* Functions cannot travel to the frame. */
    function plain(value) {
      return JSON.parse(JSON.stringify(value, function (name, item) {
        return typeof item === 'function' ? undefined : item;
      }));
    }

    function passOn(command) {
      return function (data) {
        send(command, data === undefined ? null : plain(data));
      };
    }

    this.destroyEditor = function () {
      if (destroyed) return;
      send('destroy', null);
      destroyed = true;
      window.removeEventListener('message', onMessage);
      var again = document.createElement('div');
      again.id = placeholderId;
      if (frame.parentNode) frame.parentNode.replaceChild(again, frame);
    };
    this.refreshFile = function (fresh) {
      if (fresh) config = Object.assign({}, fresh, { events: events });
      send('refreshFile', fresh ? plain(fresh) : null);
    };
    this.showMessage = function (title, text) {
      send('showMessage', text === undefined ? { text: title } : { title: title, text: text });
    };
    this.denyEditingRights = function (text) {
      send('denyEditingRights', { text: text || null });
    };
    this.refreshHistory = passOn('refreshHistory');
    this.setHistoryData = passOn('setHistoryData');
    this.setUsers = passOn('setUsers');
    this.requestClose = passOn('requestClose');
    this.grabFocus = passOn('grabFocus');
    this.setFavorite = passOn('setFavorite');
    this.downloadAs = passOn('downloadAs');

    ['applyEditRights', 'processSaveResult', 'processRightsChange', 'setEmailAddresses', 'setActionLink',
      'processMailMerge', 'attachMouseEvents', 'detachMouseEvents', 'showSharingSettings', 'setSharingSettings',
      'insertImage', 'setMailMergeRecipients', 'setRevisedFile', 'setReferenceData', 'setReferenceSource',
      'setRequestedDocument', 'setRequestedSpreadsheet', 'openDocument', 'startFilling', 'requestRoles',
      'blurFocus', 'serviceCommand', 'createConnector'].forEach(function (name) {
      self[name] = function () {};
    });
  }

  DocEditor.defaultConfig = {};
  DocEditor.version = function () { return VERSION; };
  DocEditor.warmUp = function () {};

  window.DocsAPI = window.DocsAPI || {};
  window.DocsAPI.DocEditor = DocEditor;
})();
