-- Keys of which the Document Server last said that somebody is inside: found without looking at all there ever were.
CREATE INDEX keys_with_people ON keys (document) WHERE users <> '[]';
