-- How much each content holds, as JSON, counted when it was checked; NULL if it could not be, or came before this was counted.
ALTER TABLE contents ADD COLUMN extent TEXT COLLATE "C";
ALTER TABLE kept ADD COLUMN extent TEXT COLLATE "C";
